/** What may be written at a place of a document: from its schema, from the reference, and from the names that it has itself. */
import { type Entry, entryAt, type Path, type Plain, plain } from "./outline";
import type { Place } from "./place";
import { type Property, propertiesOf, type Schema, schemasAt, valuesOf } from "./schema";

export interface Suggestion {
  readonly label: string;
  readonly kind: "key" | "value" | "type" | "name" | "port";
  readonly detail?: string;
  readonly info?: string;
  /** What is written, if not the label; `¦` says where the cursor goes. */
  readonly insert?: string;
  /** Higher comes first. */
  readonly weight: number;
}

export interface Ports {
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
}

/** What can be known beside the text. */
export interface Known {
  readonly schema: Schema | null;
  /** Types of components and kinds of tools, with their summaries. */
  readonly summaries: ReadonlyMap<string, string>;
  /** Joblets that the document can call, without the `@`. */
  readonly joblets: readonly string[];
  /** The ports of a type of component, as far as they have been loaded. */
  readonly ports: (type: string) => Ports | undefined;
}

const CONTROLS = [
  "ok",
  "error",
  "if",
  "parallelise",
  "synchronise",
  "subjob_ok",
  "subjob_error",
  "iterate",
  "iteration_ok",
  "iteration_error",
  "iterator_complete",
] as const;

/** The suggestions, and the offset in the word from which on they replace it. */
export interface Suggested {
  readonly skip: number;
  readonly options: readonly Suggestion[];
}

export function suggest(place: Place, known: Known): Suggested {
  const template = inTemplate(place);
  if (template !== null) return { skip: template.skip, options: variables(place.root, template.before) };
  if (place.role === "text") return inText(place, known);
  const name = names(place, known);
  if (name !== null) return name;
  if (known.schema === null) return { skip: 0, options: [] };
  const document = plain(place.root);
  const schemas = schemasAt(known.schema, place.path, document);
  const options: Suggestion[] = [];
  if (place.role !== "value") {
    for (const one of propertiesOf(known.schema, schemas)) {
      if (!place.keys.includes(one.name)) options.push(key(one, place));
    }
  }
  if (place.role !== "key") options.push(...values(place, schemas, known));
  return { skip: 0, options };
}

function key(property: Property, place: Place): Suggestion {
  const tail = place.hasColon
    ? ""
    : property.shape === "map" && !place.isFlow
      ? ":\n  ¦"
      : property.shape === "list" && !place.isFlow
        ? ":\n  - ¦"
        : ": ¦";
  return {
    label: property.name,
    kind: "key",
    detail: property.isRequired ? `${property.type}, required` : property.type,
    info: property.description,
    insert: `${property.name}${tail}`,
    weight: (property.isRequired ? 10 : 0) - (property.isDeprecated ? 20 : 0),
  };
}

function values(place: Place, schemas: readonly Schema[], known: Known): Suggestion[] {
  const last = place.path.at(-1);
  const isType = last === "type" || last === "kind";
  const found: Suggestion[] = valuesOf(schemas).map(({ value, description, isDefault }) => {
    const label = typeof value === "string" ? value : JSON.stringify(value);
    const summary = isType ? known.summaries.get(label) : undefined;
    return {
      label,
      kind: isType ? "type" : "value",
      detail: isDefault ? "default" : undefined,
      info: summary ?? description,
      insert: typeof value === "string" ? quoted(value) : label,
      weight: isDefault ? 5 : 0,
    };
  });
  if (last === "type" && place.path.at(-3) === "components") {
    for (const joblet of known.joblets) {
      found.push({
        label: `@${joblet}`,
        kind: "type",
        info: "A joblet of this project.",
        insert: `"@${joblet}"`,
        weight: -1,
      });
    }
  }
  return found;
}

/** In quotes only if YAML would read it as something else. */
function quoted(value: string): string {
  return /^[\w./-][\w ./-]*$/.test(value) && !/^(true|false|null|yes|no|on|off|[\d.+-]+)$/i.test(value)
    ? value
    : JSON.stringify(value);
}

/** Places that name a step, a task or a component of the document itself; null anywhere else. */
function names(place: Place, known: Known): Suggested | null {
  if (place.role === "key") return null;
  const { path, root } = place;
  const has = (...wanted: (string | number | null)[]) => matches(path, wanted);
  if (has("arcs", null, "step")) return whole(stepsOf(root), "step");
  if (path.at(-1) === "to" && path.includes("then")) return whole(tasksNear(root, path), "task");
  const inConnections = path[0] === "connections";
  if (inConnections && path[1] === "control" && (path[3] === "from" || path[3] === "to")) {
    return whole(
      componentsOf(root).map((one) => one.name),
      "component",
    );
  }
  if (inConnections && path[1] === "data" && path[3] === "from") return port(place.word, root, known, "outputs");
  if (inConnections && path[1] === "data" && path[3] === "to") return port(place.word, root, known, "inputs");
  if (inConnections && place.role === "item" && path.length === 3) return inText(place, known);
  if (path[0] === "inputs" && path.length === 2) return port(place.word, root, known, "inputs");
  if (path[0] === "outputs" && path.length === 2) return port(place.word, root, known, "outputs");
  return null;
}

function whole(all: readonly string[], detail: string): Suggested {
  return { skip: 0, options: [...new Set(all)].map((label) => ({ label, kind: "name", detail, weight: 0 })) };
}

/** `component.port`, of which the component may be written already. */
function port(word: string, root: Entry, known: Known, side: keyof Ports): Suggested {
  const components = componentsOf(root);
  const dot = word.indexOf(".");
  if (dot < 0) {
    return {
      skip: 0,
      options: components.map(({ name, type }) => {
        const ports = known.ports(type)?.[side] ?? [];
        const only = ports[0];
        return {
          label: name,
          kind: "name",
          detail: type,
          insert: only === undefined ? name : `${name}.${only}`,
          weight: ports.length === 0 && known.ports(type) !== undefined ? -5 : 0,
        };
      }),
    };
  }
  const type = components.find((one) => one.name === word.slice(0, dot))?.type;
  const ports = type === undefined ? undefined : known.ports(type);
  return {
    skip: dot + 1,
    options: (ports?.[side] ?? []).map((label, at) => ({
      label,
      kind: "port",
      detail: side === "inputs" ? "input" : "output",
      weight: -at,
    })),
  };
}

/** The lines of `connections`: `a.main -> b.input` and `a (ok) b`. */
function inText(place: Place, known: Known): Suggested {
  const kind = place.path[0] === "connections" ? place.path[1] : undefined;
  const line = place.line.replace(/^\s*-\s+["']?/, "");
  const token = /\S*$/.exec(line)?.[0] ?? "";
  const found =
    kind === "data"
      ? dataLink(line, token, place.root, known)
      : kind === "control"
        ? controlLink(line, token, place.root)
        : null;
  return found === null ? { skip: 0, options: [] } : { ...found, skip: found.skip + place.word.length - token.length };
}

function dataLink(line: string, token: string, root: Entry, known: Known): Suggested {
  const isSource = !line.includes("->");
  if (isSource && /^\s*\S+\s+$/.test(line))
    return { skip: 0, options: [{ label: "->", kind: "value", insert: "-> ¦", weight: 0 }] };
  return port(token, root, known, isSource ? "outputs" : "inputs");
}

function controlLink(line: string, token: string, root: Entry): Suggested {
  const open = line.lastIndexOf("(");
  if (open >= 0 && line.indexOf(")", open) < 0) {
    const options = CONTROLS.map(
      (label, at): Suggestion => ({ label, kind: "value", insert: `${label}) ¦`, weight: -at }),
    );
    return { skip: token.startsWith("(") ? 1 : 0, options };
  }
  if (/^\s*\S+\s+$/.test(line)) {
    const option = (word: string, at: number): Suggestion => ({
      label: `(${word})`,
      kind: "value",
      insert: `(${word}) ¦`,
      weight: -at,
    });
    return { skip: 0, options: CONTROLS.map(option) };
  }
  return whole(
    componentsOf(root).map((one) => one.name),
    "component",
  );
}

/** The expression in `{{ … }}` that the word ends in. */
function inTemplate(place: Place): { before: string; skip: number } | null {
  if (place.role === "key") return null;
  const text = place.line;
  const open = text.lastIndexOf("{{");
  if (open < 0 || text.indexOf("}}", open) >= 0) return null;
  const before = /[\w.]*$/.exec(place.word)?.[0] ?? "";
  const dot = before.lastIndexOf(".");
  return { before, skip: place.word.length - (before.length - dot - 1) };
}

/** The variables that an expression can read. */
function variables(root: Entry, before: string): Suggestion[] {
  const dot = before.lastIndexOf(".");
  const owner = before.slice(0, Math.max(dot, 0));
  const isJob = entryAt(root, ["components"]) !== undefined;
  const of = (path: Path) =>
    Object.entries(asMap(plain(entryAt(root, path) ?? root)))
      .filter(([name, value]) => !(path[0] === "context" && name === "groups" && typeof value === "object"))
      .map(([label, value]): Suggestion => ({ label, kind: "name", detail: shown(value), weight: 0 }));
  if (owner === "workload" || owner === "context" || owner === "params" || owner === "state") {
    return entryAt(root, [owner]) === undefined ? [] : of([owner]);
  }
  if (owner === "global")
    return componentsOf(root).map(({ name, type }) => ({ label: name, kind: "name", detail: type, weight: 0 }));
  if (owner !== "") return [];
  const fixed = isJob
    ? ["context", "global", "iteration", "state", "params"]
    : ["workload", "ctx", "args", "iter", "event", "outcome", "output", "state"];
  return [
    ...fixed.map((label): Suggestion => ({ label, kind: "value", weight: 1 })),
    ...stepsOf(root).map((label): Suggestion => ({ label, kind: "name", detail: "result of the step", weight: 0 })),
  ];
}

function shown(value: Plain): string {
  const text = JSON.stringify(value);
  return text.length > 24 ? `${text.slice(0, 23)}…` : text;
}

function asMap(value: Plain): { [key: string]: Plain } {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
}

/** The end of a path is this; null stands for any key. */
function matches(path: Path, wanted: readonly (string | number | null)[]): boolean {
  const end = path.slice(-wanted.length);
  return end.length === wanted.length && wanted.every((key, at) => key === null || key === end[at]);
}

export function stepsOf(root: Entry): string[] {
  const steps = entryAt(root, ["workflow"])?.children ?? [];
  return steps
    .flatMap((step) => entryAt(step, ["step"])?.text ?? [])
    .filter((name) => name !== "" && !name.includes("\u{e000}"));
}

export function componentsOf(root: Entry): { name: string; type: string }[] {
  const all = entryAt(root, ["components"]);
  if (all === undefined) return [];
  return all.children
    .map((entry) => ({
      name: all.kind === "map" ? String(entry.path.at(-1)) : (entryAt(entry, ["name"])?.text ?? ""),
      type: written(entryAt(entry, ["type"])?.text),
    }))
    .filter(({ name }) => name !== "" && !name.includes("\u{e000}"));
}

/** Not the marker that stands for the word at the cursor. */
function written(text: string | undefined): string {
  return text === undefined || text.includes("\u{e000}") ? "" : text;
}

/** The names of the tasks of the step that a path lies in. */
function tasksNear(root: Entry, path: Path): string[] {
  const at = path.indexOf("tool");
  const tool = at < 0 ? undefined : entryAt(root, path.slice(0, at + 1));
  return tool?.children.flatMap((task) => entryAt(task, ["name"])?.text ?? []) ?? [];
}

/** The kind of a document, from its text. */
export function kindOf(root: Entry): "playbook" | "job" | "joblet" {
  const said = entryAt(root, ["kind"])?.text.toLowerCase();
  if (said === "job" || said === "joblet" || said === "playbook") return said;
  const has = (key: string) => entryAt(root, [key]) !== undefined;
  if (!has("components")) return "playbook";
  return has("inputs") || has("outputs") || has("params") ? "joblet" : "job";
}
