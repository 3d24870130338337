/** Puts a document into the catalog, as a new version. */
import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { Field, FormDialog, Input, toast, useSending } from "@/ui";
import { putDocument } from "./queries";
import "./documents.css";

interface Props {
  text: string;
  /** The joblets that go with it, by their paths from its folder. */
  sources?: Record<string, string> | (() => Promise<Record<string, string>>);
  /** The path to begin with. */
  path: string;
  /** A new version of this very document: its path stays. */
  isFixed?: boolean;
  onClose: () => void;
  onPut?: () => void;
  /** Where one is stays; else the new version is shown. */
  isStaying?: boolean;
}

export function PutDialog({ text, sources, path: first, isFixed = false, onClose, onPut, isStaying = false }: Props) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [path, setPath] = useState(first);
  const sending = useSending();
  const wrong = /^[\w.-]+(\/[\w.-]+)*$/.test(path)
    ? null
    : "a path of folders and a name is needed, such as `sales/orders`";

  async function put() {
    const filed = await putDocument(path, text, typeof sources === "function" ? await sources() : sources);
    await Promise.all([
      queries.invalidateQueries({ queryKey: ["documents"] }),
      queries.invalidateQueries({ queryKey: ["document", path] }),
      queries.invalidateQueries({ queryKey: ["versions", path] }),
    ]);
    toast("done", `Saved ${path} in the catalog, as version ${filed.version}`);
    onPut?.();
    onClose();
    if (!isStaying) await navigate({ to: "/documents/catalog/$", params: { _splat: path } });
  }

  return (
    <FormDialog
      sending={sending}
      title={isFixed ? "Save a new version" : "Add to the catalog"}
      verb={isFixed ? "Save the version" : "Add"}
      icon="upload"
      size="small"
      isWrong={wrong !== null}
      onSend={put}
      onClose={onClose}
    >
      <p>
        The catalog keeps every version. Schedules and hooks run what is in it, and so can everybody who may start runs.
      </p>
      <Field
        label="Path"
        isRequired
        error={path === "" && !sending.isTried ? null : wrong}
        hint="Its name in the catalog, such as `sales/orders`."
      >
        {(control) => (
          <Input
            {...control}
            className="mono"
            value={path}
            readOnly={isFixed}
            autoFocus
            spellCheck={false}
            onChange={(event) => setPath(event.target.value)}
          />
        )}
      </Field>
    </FormDialog>
  );
}
