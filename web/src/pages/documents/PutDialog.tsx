/** Puts a document into the catalog, as a new version. */
import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { ApiError } from "@/api/errors";
import { Button, Dialog, Field, Input, toast, toastError } from "@/ui";
import { putDocument } from "./queries";
import { Refusal } from "./RunForm";
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
  const [refusal, setRefusal] = useState<ApiError | null>(null);
  const [isBusy, setBusy] = useState(false);
  const wrong = /^[\w.-]+(\/[\w.-]+)*$/.test(path)
    ? null
    : "names of folders and of the document are wanted, such as `sales/orders`";

  async function put(event: FormEvent) {
    event.preventDefault();
    if (wrong !== null) return;
    setBusy(true);
    try {
      const filed = await putDocument(path, text, typeof sources === "function" ? await sources() : sources);
      await Promise.all([
        queries.invalidateQueries({ queryKey: ["documents"] }),
        queries.invalidateQueries({ queryKey: ["document", path] }),
        queries.invalidateQueries({ queryKey: ["versions", path] }),
      ]);
      toast("done", `Put ${path} into the catalog, as version ${filed.version}`);
      onPut?.();
      onClose();
      if (!isStaying) await navigate({ to: "/documents/catalog/$", params: { _splat: path } });
    } catch (error) {
      setBusy(false);
      if (error instanceof ApiError && error.status < 500) setRefusal(error);
      else toastError(error);
    }
  }

  return (
    <Dialog
      isOpen
      onClose={onClose}
      title={isFixed ? "Put a new version" : "Put into the catalog"}
      size="small"
      actions={
        <>
          <Button onClick={onClose}>Back</Button>
          <Button
            look="primary"
            icon="upload"
            type="submit"
            form="put-document"
            isBusy={isBusy}
            disabled={wrong !== null}
          >
            {isFixed ? "Put the version" : "Put"}
          </Button>
        </>
      }
    >
      <form id="put-document" className="documents-form" onSubmit={(event) => void put(event)} noValidate>
        {refusal !== null && <Refusal error={refusal} />}
        <p>
          The catalog keeps every version. Schedules and hooks run what is in it, and so can everybody who may start
          runs.
        </p>
        <Field
          label="Path"
          isRequired
          error={path === "" ? null : wrong}
          hint="The name it goes by, such as `sales/orders`."
        >
          {(control) => (
            <Input
              {...control}
              className="mono"
              value={path}
              readOnly={isFixed}
              autoFocus
              spellCheck={false}
              onChange={(event) => {
                setPath(event.target.value);
                setRefusal(null);
              }}
            />
          )}
        </Field>
      </form>
    </Dialog>
  );
}
