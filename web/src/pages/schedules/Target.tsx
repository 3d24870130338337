/** What a schedule or a hook runs: a document of the catalog, and what it is given. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useId, useState } from "react";
import { useSession } from "@/api/session";
import { Button, EmptyState, Field, Input, Loading, Select, toastError } from "@/ui";
import { type Extra, type FormField, inputsOf, type Typed } from "../documents/form";
import { PutDialog } from "../documents/PutDialog";
import {
  catalogQuery,
  examine,
  type FileEntry,
  type FileText,
  filesQuery,
  readFile,
  versionsQuery,
} from "../documents/queries";
import { Extras, InputField } from "../documents/RunForm";
import { sourcesOf } from "../documents/sources";

export interface TargetState {
  path: string;
  version: number | null;
  context: string;
  typed: Typed;
  extras: readonly Extra[];
}

/** The inputs that the document of a target takes; null while they are not known. */
export function useTargetForm(target: TargetState) {
  return useQuery({
    queryKey: ["form", target.path, target.version ?? "newest"],
    queryFn: ({ signal }) =>
      examine({ path: target.path, ...(target.version !== null && { version: target.version }) }, signal).then(
        (answer) => answer.form,
      ),
    enabled: target.path !== "",
    retry: false,
    staleTime: 30_000,
  });
}

/** A payload that was given before, as it would be typed now that the form is known. */
export function targetOf(
  from: { path: string; version: number | null; context: string | null; payload: Record<string, unknown> } | null,
): TargetState {
  if (from === null) return { path: "", version: null, context: "", typed: {}, extras: [] };
  const typed = Object.fromEntries(
    Object.entries(from.payload).map(([name, value]) => [
      name,
      typeof value === "string" ? value : JSON.stringify(value),
    ]),
  );
  return { path: from.path, version: from.version, context: from.context ?? "", typed, extras: [] };
}

/** What the target gives to its runs. Names that the form does not know are kept as they were. */
export function payloadOf(target: TargetState, fields: readonly FormField[]) {
  const known = new Set(fields.map((field) => field.name));
  const rest = Object.entries(target.typed)
    .filter(([name]) => !known.has(name))
    .map(([name, text]) => ({ name, text }));
  return inputsOf(fields, target.typed, [...rest, ...target.extras]);
}

interface Props {
  target: TargetState;
  onChange: (target: TargetState) => void;
  errors: Readonly<Record<string, string>>;
  pathError: string | null;
}

export function Target({ target, onChange, errors, pathError }: Props) {
  const id = useId();
  const documents = useQuery(catalogQuery);
  const versions = useQuery({ ...versionsQuery(target.path), enabled: target.path !== "", retry: false });
  const form = useTargetForm(target);
  const known = documents.data?.documents.filter((one) => one.kind !== "joblet") ?? [];
  return (
    <>
      <div className="schedules-pair">
        <Field
          label="Document"
          isRequired
          hint="From the catalog"
          error={pathError ?? (form.error && target.path !== "" ? form.error.message : null)}
        >
          {(control) => (
            <>
              <Input
                {...control}
                className="mono"
                list={id}
                value={target.path}
                spellCheck={false}
                placeholder="sales/orders"
                onChange={(event) => onChange({ ...target, path: event.target.value, version: null })}
              />
              <datalist id={id}>
                {known.map((one) => (
                  <option key={one.path} value={one.path}>
                    {one.kind}
                  </option>
                ))}
              </datalist>
            </>
          )}
        </Field>
        <Field label="Version" hint="The newest follows every new version.">
          {(control) => (
            <Select
              {...control}
              value={target.version === null ? "" : String(target.version)}
              choices={[
                { value: "", label: "The newest" },
                ...(versions.data?.documents ?? []).map((one) => ({
                  value: String(one.version),
                  label: `Version ${one.version}`,
                })),
              ]}
              onChange={(event) =>
                onChange({ ...target, version: event.target.value === "" ? null : Number(event.target.value) })
              }
            />
          )}
        </Field>
      </div>
      {form.data && (form.data.fields.length > 0 || form.data.is_open || form.data.contexts.length > 0) && (
        <fieldset className="schedules-inputs">
          <legend className="ui-field-label">Inputs of each run</legend>
          {form.data.contexts.length > 0 && (
            <Field label="Context group">
              {(control) => (
                <Select
                  {...control}
                  value={target.context}
                  choices={[{ value: "", label: "None: the defaults" }, ...(form.data?.contexts ?? [])]}
                  onChange={(event) => onChange({ ...target, context: event.target.value })}
                />
              )}
            </Field>
          )}
          {form.data.fields.map((field) => (
            <InputField
              key={field.name}
              field={field}
              text={target.typed[field.name]}
              error={errors[field.name] ?? null}
              onType={(text) => {
                const { [field.name]: _, ...rest } = target.typed;
                onChange({ ...target, typed: text === undefined ? rest : { ...rest, [field.name]: text } });
              }}
            />
          ))}
          {form.data.is_open && (
            <Extras extras={target.extras} errors={errors} onChange={(extras) => onChange({ ...target, extras })} />
          )}
        </fieldset>
      )}
    </>
  );
}

/** Without a document in the catalog there is nothing to run: says how one gets there. */
export function NoDocuments({ what }: { what: string }) {
  const { session, can } = useSession();
  const isLocal = session?.is_local ?? false;
  const files = useQuery({ ...filesQuery, enabled: isLocal && can("run") });
  const [chosen, setChosen] = useState("");
  const [put, setPut] = useState<{ file: FileText; sources: () => Promise<Record<string, string>> } | null>(null);
  const usable = files.data?.files.filter((one) => one.kind.toLowerCase() !== "joblet") ?? [];

  async function open(entry: FileEntry) {
    try {
      const file = await readFile(entry.path);
      const sources = async () => {
        const { graph } = await examine({ text: file.text, file: file.file });
        return sourcesOf(graph, file, files.data?.files ?? []);
      };
      setPut({ file, sources });
    } catch (error) {
      toastError(error);
    }
  }

  return (
    <EmptyState icon="documents" title="The catalog is empty">
      <p>{what} run documents of the catalog, which keeps every version of them.</p>
      {isLocal && can("run") ? (
        files.data === undefined ? (
          <Loading rows={1} />
        ) : usable.length === 0 ? (
          <p>
            There is no playbook or job in this folder yet: <Link to="/documents">create one</Link> first.
          </p>
        ) : (
          <div className="schedules-put">
            <Select
              aria-label="File to add to the catalog"
              value={chosen || (usable[0]?.path ?? "")}
              choices={usable.map((one) => one.path)}
              onChange={(event) => setChosen(event.target.value)}
            />
            <Button
              look="primary"
              icon="upload"
              onClick={() => {
                const entry = usable.find((one) => one.path === chosen) ?? usable[0];
                if (entry !== undefined) void open(entry);
              }}
            >
              Add this file to the catalog
            </Button>
          </div>
        )
      ) : (
        <p>
          <code>penstock catalog put sales/orders orders.yaml</code>
        </p>
      )}
      {put !== null && (
        <PutDialog
          text={put.file.text}
          sources={put.sources}
          path={put.file.path.replace(/\.ya?ml$/i, "")}
          isStaying
          onClose={() => setPut(null)}
        />
      )}
    </EmptyState>
  );
}
