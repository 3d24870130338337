/** Starts a run: a form made from the workload or the context of a document. */
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import {
  Badge,
  Button,
  Checkbox,
  Field,
  FormDialog,
  IconButton,
  Input,
  Prose,
  Select,
  Textarea,
  useSending,
} from "@/ui";
import { blamed, type Extra, type FormField, inputsOf, shown, type Typed } from "./form";
import { type Asked, type Form, type Graph, start } from "./queries";
import "./documents.css";

interface Props {
  form: Form;
  graph: Graph | null;
  /** What is run. It is asked for when the form is sent: a file may have to be saved first. Null gives up. */
  document: () => Promise<Asked | null>;
  /** What the button says. */
  verb?: string;
  /** The inputs of an earlier run. */
  given?: Record<string, unknown>;
  onClose: () => void;
}

/** What was typed last into the form of a document, so that the next try need not begin again. */
const remembered = new Map<
  string,
  { typed: Typed; extras: readonly Extra[]; context: string; label: string; keep: readonly string[] }
>();

export function RunForm({ form, graph, document: wanted, verb = "Run", given, onClose }: Props) {
  const navigate = useNavigate();
  const key = `${form.kind} ${form.name}`;
  const before = given === undefined ? remembered.get(key) : undefined;
  const [typed, setTyped] = useState<Typed>(() => before?.typed ?? typedOf(form, given));
  const [extras, setExtras] = useState<readonly Extra[]>(before?.extras ?? []);
  const [context, setContext] = useState(before?.context ?? "");
  const [label, setLabel] = useState(before?.label ?? "");
  const [keep, setKeep] = useState<readonly string[]>(before?.keep ?? []);
  const sending = useSending();
  const { isTried, refusal } = sending;

  const { payload, errors } = inputsOf(form.fields, typed, extras);
  const said = refusal === null ? {} : blamed(form.fields, refusal.message, refusal.problems);
  const hasErrors = Object.keys(errors).length > 0;
  const ports = form.kind === "job" ? portsOf(graph) : [];
  const isEmpty = form.fields.length === 0 && !form.is_open && form.contexts.length === 0;

  function type(name: string, text: string | undefined) {
    sending.forgive();
    setTyped(({ [name]: _, ...rest }) => (text === undefined ? rest : { ...rest, [name]: text }));
  }

  async function send() {
    remembered.set(key, { typed, extras, context, label, keep });
    const document = await wanted();
    if (document === null) return;
    const { execution_id } = await start({
      document,
      payload,
      ...(context !== "" && { context }),
      ...(label.trim() !== "" && { label: label.trim() }),
      ...(keep.length > 0 && { keep: [...keep] }),
    });
    await navigate({ to: "/runs/$run", params: { run: execution_id } });
  }

  return (
    <FormDialog
      sending={sending}
      title={
        <>
          Run <span className="mono">{form.name}</span>
        </>
      }
      verb={verb}
      icon="play"
      isWrong={hasErrors}
      isBlamed={Object.keys(said).length > 0}
      onSend={send}
      onClose={onClose}
    >
      {isEmpty && <p className="quiet">This {form.kind} takes no inputs.</p>}
      {form.contexts.length > 0 && (
        <Field label="Context group" hint="A named set of values that is laid over the defaults.">
          {(control) => (
            <Select
              {...control}
              value={context}
              onChange={(event) => setContext(event.target.value)}
              choices={[{ value: "", label: "None: the defaults" }, ...form.contexts]}
            />
          )}
        </Field>
      )}
      {form.fields.map((field) => (
        <InputField
          key={field.name}
          field={field}
          text={typed[field.name]}
          error={(isTried ? errors[field.name] : undefined) ?? said[field.name] ?? null}
          onType={(text) => type(field.name, text)}
        />
      ))}
      {form.is_open && <Extras extras={extras} errors={isTried ? errors : {}} onChange={setExtras} />}
      <details className="run-more" open={label !== "" || keep.length > 0}>
        <summary>Label{ports.length > 0 && " and rows to keep"}</summary>
        <Field label="Label" hint="Any text, to find the run by later.">
          {(control) => (
            <Input {...control} value={label} maxLength={200} onChange={(event) => setLabel(event.target.value)} />
          )}
        </Field>
        {ports.length > 0 && (
          <fieldset className="run-ports">
            <legend className="ui-field-label">Keep the rows of</legend>
            <p className="ui-field-hint">You can look at them on the page of the run, under Data.</p>
            {ports.map((port) => (
              <Checkbox
                key={port}
                label={<span className="mono">{port}</span>}
                checked={keep.includes(port)}
                onChange={(event) =>
                  setKeep(event.target.checked ? [...keep, port] : keep.filter((one) => one !== port))
                }
              />
            ))}
          </fieldset>
        )}
      </details>
    </FormDialog>
  );
}

/** One input, with its type, its default and what is wrong with it. */
export function InputField(props: {
  field: FormField;
  text: string | undefined;
  error: string | null;
  onType: (text: string | undefined) => void;
}) {
  const { field, text, error, onType } = props;
  const preset = field.is_secret ? "" : shown(field);
  const value = text ?? preset;
  const isChanged = text !== undefined && text !== preset;
  const isLong =
    field.type === "array" || field.type === "object" || (field.type !== "boolean" && preset.includes("\n"));
  const label = (
    <>
      <span className="mono">{field.name}</span> <Badge>{TYPES[field.type]}</Badge>
    </>
  );
  if (field.type === "boolean") {
    return (
      <div className="run-field">
        <Checkbox label={label} checked={value === "true"} onChange={(event) => onType(String(event.target.checked))} />
        {isChanged && <Reset name={field.name} onReset={() => onType(undefined)} />}
        {error !== null && (
          <p className="ui-field-error">
            <Prose text={error} />
          </p>
        )}
      </div>
    );
  }
  const shared = {
    value,
    spellCheck: false,
    className: field.type === "string" ? undefined : "mono",
    autoComplete: "off",
    onChange: (event: { target: { value: string } }) => onType(event.target.value),
  };
  return (
    <div className="run-field">
      <Field
        label={label}
        error={error}
        hint={
          isLong && field.type !== "string"
            ? "JSON or YAML"
            : field.is_secret
              ? "A secret: it is not shown in the run."
              : undefined
        }
      >
        {(control) =>
          isLong ? (
            <Textarea {...control} {...shared} rows={Math.min(12, Math.max(2, value.split("\n").length))} />
          ) : (
            <Input
              {...control}
              {...shared}
              type={field.is_secret ? "password" : "text"}
              inputMode={field.type === "integer" || field.type === "number" ? "decimal" : undefined}
            />
          )
        }
      </Field>
      {isChanged && <Reset name={field.name} onReset={() => onType(undefined)} />}
    </div>
  );
}

const TYPES: Record<FormField["type"], string> = {
  string: "text",
  integer: "whole number",
  number: "number",
  boolean: "yes or no",
  array: "list",
  object: "mapping",
  any: "any value",
};

function Reset({ name, onReset }: { name: string; onReset: () => void }) {
  return <IconButton icon="resume" label={`Reset ${name} to its default`} size="small" onClick={onReset} />;
}

/** Inputs that the document does not name. */
export function Extras(props: {
  extras: readonly Extra[];
  errors: Readonly<Record<string, string>>;
  onChange: (extras: readonly Extra[]) => void;
}) {
  const { extras, errors, onChange } = props;
  const set = (at: number, change: Partial<Extra>) =>
    onChange(extras.map((one, index) => (index === at ? { ...one, ...change } : one)));
  return (
    <div className="run-extras">
      {extras.map((extra, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a row has no name of its own until one is typed.
        <div key={at} className="run-extra">
          <Field label="Name" error={errors[`extra ${at}`]}>
            {(control) => (
              <Input
                {...control}
                className="mono"
                value={extra.name}
                onChange={(event) => set(at, { name: event.target.value })}
              />
            )}
          </Field>
          <Field label="Value">
            {(control) => (
              <Input
                {...control}
                className="mono"
                value={extra.text}
                onChange={(event) => set(at, { text: event.target.value })}
              />
            )}
          </Field>
          <IconButton
            icon="trash"
            label="Remove this input"
            onClick={() => onChange(extras.filter((_, index) => index !== at))}
          />
        </div>
      ))}
      <Button size="small" icon="plus" onClick={() => onChange([...extras, { name: "", text: "" }])}>
        Add an input
      </Button>
    </div>
  );
}

/** The ports that rows come out of, as far as links use them. */
export function portsOf(graph: Graph | null): string[] {
  const found =
    graph?.edges.filter((edge) => edge.kind === "data").map((edge) => `${edge.source}.${edge.port ?? "main"}`) ?? [];
  return [...new Set(found)];
}

/** What was given to an earlier run, as it would have been typed. */
export function typedOf(form: Form, given: Record<string, unknown> | undefined): Typed {
  if (given === undefined) return {};
  const known = form.fields.filter((field) => field.name in given);
  return Object.fromEntries(known.map((field) => [field.name, shown({ ...field, default: given[field.name] })]));
}
