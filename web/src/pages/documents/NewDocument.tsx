import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { Field, FormDialog, Icon, Input, useSending } from "@/ui";
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
  const sending = useSending();
  const problem = pathProblem(path, taken);

  function close() {
    dropDraft(BEGUN);
    onClose();
  }

  async function make() {
    await saveFile(path, begun?.text ?? template(kind, nameOf(path)), null);
    dropDraft(BEGUN);
    await queries.invalidateQueries({ queryKey: filesQuery.queryKey });
    await navigate({ to: "/documents/file/$", params: { _splat: path } });
  }

  return (
    <FormDialog
      sending={sending}
      title={begun === null ? "New document" : "New document from an example"}
      verb="Create and open"
      isWrong={problem !== null}
      isBlamed
      onSend={make}
      onClose={close}
    >
      {begun === null && (
        <fieldset className="documents-kinds">
          <legend className="ui-field-label">Kind</legend>
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
        hint="A path within the project folder. Missing folders are created."
        error={(sending.isTried ? problem : null) ?? sending.refusal?.message ?? null}
      >
        {(control) => (
          <Input
            {...control}
            value={path}
            autoFocus
            spellCheck={false}
            placeholder="jobs/orders.yaml"
            className="mono"
            onChange={(event) => setPath(event.target.value)}
          />
        )}
      </Field>
    </FormDialog>
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
