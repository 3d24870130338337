/** The inputs of a run as a form has them, and as the API wants them. */
import { outline, type Plain, plain } from "@/editor/outline";
import type { Schemas } from "./queries";

export type FormField = Schemas["FieldOut"];

/** What is in the fields: texts, as they were typed. A field that was not touched is not given to the run. */
export type Typed = Readonly<Record<string, string>>;

export interface Extra {
  readonly name: string;
  readonly text: string;
}

export interface Inputs {
  readonly payload: Record<string, Plain>;
  /** Name of a field -> what is wrong with it. */
  readonly errors: Readonly<Record<string, string>>;
}

/** Lists and mappings up to this length are shown on one line. */
const SHORT = 60;

/** A default, as it is shown in the field. */
export function shown(field: FormField): string {
  const value = field.default as Plain | undefined;
  if (value === null || value === undefined) return "";
  if (typeof value !== "object") return String(value);
  const short = JSON.stringify(value);
  return short.length <= SHORT ? short : JSON.stringify(value, null, 2);
}

export function inputsOf(fields: readonly FormField[], typed: Typed, extras: readonly Extra[] = []): Inputs {
  const payload: Record<string, Plain> = {};
  const errors: Record<string, string> = {};
  for (const field of fields) {
    const text = typed[field.name];
    if (text === undefined || text === shown(field)) continue;
    const read = readAs(field.type, text);
    if ("error" in read) errors[field.name] = read.error;
    else payload[field.name] = read.value;
  }
  extras.forEach(({ name, text }, at) => {
    const key = `extra ${at}`;
    if (name.trim() === "" && text.trim() === "") return;
    if (name.trim() === "") errors[key] = "a name is needed";
    else if (name in payload || fields.some((field) => field.name === name))
      errors[key] = `there is already a field \`${name}\``;
    else payload[name] = anyOf(text);
  });
  return { payload, errors };
}

type Read = { value: Plain } | { error: string };

export function readAs(type: FormField["type"], text: string): Read {
  const trimmed = text.trim();
  switch (type) {
    case "string":
      return { value: text };
    case "boolean":
      if (trimmed === "true" || trimmed === "false") return { value: trimmed === "true" };
      return { error: "this must be `true` or `false`" };
    case "integer":
      if (/^[-+]?\d+$/.test(trimmed) && Number.isSafeInteger(Number(trimmed))) return { value: Number(trimmed) };
      return { error: trimmed === "" ? "a whole number is needed" : `this must be a whole number, not \`${trimmed}\`` };
    case "number":
      if (trimmed !== "" && Number.isFinite(Number(trimmed))) return { value: Number(trimmed) };
      return { error: trimmed === "" ? "a number is needed" : `this must be a number, not \`${trimmed}\`` };
    case "array":
    case "object":
      return collection(type, trimmed);
    case "any":
      return { value: anyOf(text) };
  }
}

function collection(type: "array" | "object", text: string): Read {
  const wanted = type === "array" ? "a list" : "a mapping";
  const example = type === "array" ? "such as `[1, 2]`" : "such as `{a: 1}`";
  if (text === "") return { error: `this must be ${wanted}, ${example}` };
  const value = structured(text);
  if (value === undefined) return { error: `it is neither JSON nor YAML: a bracket is not closed` };
  const isRight =
    type === "array" ? Array.isArray(value) : typeof value === "object" && value !== null && !Array.isArray(value);
  return isRight ? { value } : { error: `this must be ${wanted}, ${example}` };
}

/** A value of any kind: what can be read as JSON or YAML is what it says, all else is a text. */
function anyOf(text: string): Plain {
  const value = structured(text.trim());
  return value === undefined ? text : value;
}

/** Reads JSON, or YAML; undefined for brackets that do not close. */
export function structured(text: string): Plain | undefined {
  try {
    return JSON.parse(text) as Plain;
  } catch {
    // Then it may be YAML.
  }
  const entry = outline(`value:\n${text.replace(/^/gm, "  ")}`).children[0];
  if (entry === undefined) return undefined;
  const isWhole = !entry.isFlow || (entry.isClosed && text.length + 2 + "value:\n".length >= entry.to);
  if (!isWhole || (entry.isFlow && text.split("\n").length === 1 && entry.to < `value:\n  ${text}`.trimEnd().length))
    return undefined;
  return plain(entry);
}

/** The fields that an error of the API speaks about: `payload.limit`, or a name in backticks. */
export function blamed(
  fields: readonly FormField[],
  message: string,
  problems: readonly { where?: string | null; message: string }[],
): Record<string, string> {
  const found: Record<string, string> = {};
  for (const { where, message: said } of problems) {
    const name = /(?:^|\.)payload\.([^.]+)/.exec(where ?? "")?.[1];
    if (name !== undefined && fields.some((field) => field.name === name)) found[name] = said;
  }
  for (const field of fields)
    if (message.includes(`\`${field.name}\``) && !(field.name in found)) found[field.name] = message;
  return found;
}
