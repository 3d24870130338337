import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { ApiError } from "@/api/errors";
import { Button, Dialog, Field, Icon, Input, toastError } from "@/ui";
import { dropDraft, readDraft } from "./drafts";
import { kindIcon } from "./icons";
import { filesQuery, saveFile } from "./queries";
import { KINDS, nameOf, pathProblem, type TemplateKind, template } from "./templates";

/** A text to begin with, left by another page: the example of a component or a tool. */
export const BEGUN = "new";

export function NewDocument({ taken, onClose }: { taken: readonly string[]; onClose: () => void }) {
  const navigate = useNavigate();
  const queries = useQueryClient();
  const [begun] = useState(() => readDraft(BEGUN));
  const [kind, setKind] = useState<TemplateKind>("playbook");
  const [path, setPath] = useState(() => suggested(begun?.text, taken));
  const [isTried, setTried] = useState(false);
  const [refused, setRefused] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const problem = pathProblem(path, taken);

  function close() {
    dropDraft(BEGUN);
    onClose();
  }

  async function make(event: FormEvent) {
    event.preventDefault();
    setTried(true);
    if (problem !== null) return;
    setBusy(true);
    try {
      await saveFile(path, begun?.text ?? template(kind, nameOf(path)), null);
      dropDraft(BEGUN);
      await queries.invalidateQueries({ queryKey: filesQuery.queryKey });
      await navigate({ to: "/documents/file/$", params: { _splat: path } });
    } catch (error) {
      if (error instanceof ApiError && error.status < 500) setRefused(error.message);
      else toastError(error);
      setBusy(false);
    }
  }

  return (
    <Dialog
      isOpen
      onClose={close}
      title={begun === null ? "New document" : "New document from an example"}
      actions={
        <>
          <Button onClick={close}>Back</Button>
          <Button look="primary" type="submit" form="new-document" isBusy={isBusy}>
            Make and open
          </Button>
        </>
      }
    >
      <form id="new-document" className="documents-form" onSubmit={(event) => void make(event)} noValidate>
        {begun === null && (
          <fieldset className="documents-kinds">
            <legend className="ui-field-label">What it is to be</legend>
            {KINDS.map((one) => (
              <label key={one.kind} className="documents-choice">
                <input
                  type="radio"
                  name="kind"
                  value={one.kind}
                  checked={kind === one.kind}
                  onChange={() => setKind(one.kind)}
                />
                <Icon name={kindIcon(one.kind)} />
                <span>
                  <strong>{one.label}</strong>
                  <span className="quiet">{one.about}</span>
                </span>
              </label>
            ))}
          </fieldset>
        )}
        <Field
          label="File"
          isRequired
          hint="From the folder of the project; folders that are missing are made."
          error={(isTried ? problem : null) ?? refused}
        >
          {(control) => (
            <Input
              {...control}
              value={path}
              autoFocus
              spellCheck={false}
              placeholder="jobs/orders.yaml"
              className="mono"
              onChange={(event) => {
                setPath(event.target.value);
                setRefused(null);
              }}
            />
          )}
        </Field>
      </form>
    </Dialog>
  );
}

function suggested(text: string | undefined, taken: readonly string[]): string {
  const name = /^metadata:\s*(?:\{[^}\n]*?|\n\s+)name:\s*["']?([\w.-]+)/m.exec(text ?? "")?.[1];
  if (name === undefined) return "";
  for (let at = 1; ; at += 1) {
    const path = at === 1 ? `${name}.yaml` : `${name}-${at}.yaml`;
    if (!taken.includes(path)) return path;
  }
}
