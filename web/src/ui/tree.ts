/**
 * A value as rows: what of it is in sight, given what is open. Of a large one only parts are there: its branches are fetched when they
 * are opened, a page at a time.
 *
 * Law: `parts` holds what was fetched, by JSON pointer; the value itself is at the empty pointer. An entry `{"$more": …}` of a part
 * stands for a branch that is fetched by its own pointer.
 */

export interface Part {
  kind: "list" | "mapping" | "text" | "atom";
  /** The entries that are there, from the first on; of a text or an atom the value itself. */
  value: unknown;
  /** How many entries or characters there are in all. */
  total: number | null;
}

export type Parts = ReadonlyMap<string, Part>;

export interface Row {
  path: string;
  level: number;
  name: string | null;
  isIndex: boolean;
  kind: "string" | "number" | "atom" | "branch" | "more";
  text: string;
  isBranch: boolean;
  isOpen: boolean;
  /** Opening it fetches it. */
  isMissing: boolean;
  /** Of a row `show more`: from where on. */
  from: number | null;
  place: number;
  siblings: number;
}

const LONGEST = 2000;

export function partOf(value: unknown, total: number | null): Part {
  if (Array.isArray(value)) return { kind: "list", value, total: total ?? value.length };
  if (typeof value === "object" && value !== null)
    return { kind: "mapping", value, total: total ?? Object.keys(value).length };
  if (typeof value === "string") return { kind: "text", value, total: total ?? value.length };
  return { kind: "atom", value, total: null };
}

/** A part with what came after it. */
export function extended(part: Part | undefined, next: Part): Part {
  if (part === undefined) return next;
  if (part.kind === "list")
    return { ...part, value: [...(part.value as unknown[]), ...(next.value as unknown[])], total: next.total };
  if (part.kind === "mapping")
    return { ...part, value: { ...(part.value as object), ...(next.value as object) }, total: next.total };
  if (part.kind === "text")
    return { ...part, value: `${part.value as string}${next.value as string}`, total: next.total };
  return next;
}

interface More {
  kind: string;
  total: number;
}

export function moreOf(value: unknown): More | null {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return null;
  const keys = Object.keys(value);
  if (keys.length !== 1 || keys[0] !== "$more") return null;
  const more = (value as { $more: unknown }).$more;
  if (typeof more !== "object" || more === null) return null;
  const { kind, total } = more as Partial<More>;
  return typeof kind === "string" && typeof total === "number" ? { kind, total } : null;
}

export function sizeOf(part: Part): number {
  if (part.kind === "list") return (part.value as unknown[]).length;
  if (part.kind === "mapping") return Object.keys(part.value as object).length;
  return part.kind === "text" ? (part.value as string).length : 1;
}

export const pointer = (path: string, key: string) => `${path}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`;

/**
 * The rows in sight. `toggled` are the pointers whose state is not the usual one: branches above `depth` are open. `markOf` tells marks
 * from values: where all is there, a value may look like one.
 */
export function rowsOf(parts: Parts, toggled: ReadonlySet<string>, depth: number, markOf = moreOf): Row[] {
  const rows: Row[] = [];
  const root = parts.get("");
  if (root !== undefined) add(root.value, "", null, false, 0, 1, 1);
  return rows;

  function add(
    value: unknown,
    path: string,
    name: string | null,
    isIndex: boolean,
    level: number,
    place: number,
    siblings: number,
  ) {
    const more = markOf(value);
    const part = more !== null || path === "" ? parts.get(path) : undefined;
    const known = part !== undefined ? part.value : value;
    const shared = { path, level, name, isIndex, place, siblings, from: null };
    if (more !== null && part === undefined) {
      const isOpen = toggled.has(path);
      rows.push({
        ...shared,
        kind: "branch",
        text: closed(more.kind, more.total),
        isBranch: true,
        isOpen,
        isMissing: true,
      });
      if (isOpen)
        rows.push({
          ...shared,
          path: `${path}#loading`,
          level: level + 1,
          name: null,
          kind: "more",
          text: "Loading …",
          isBranch: false,
          isOpen: false,
          isMissing: false,
        });
      return;
    }
    const inner = entriesOf(known);
    const total = part?.total ?? inner?.length ?? 0;
    if (inner === null || total === 0) {
      const kind = typeof known === "string" ? "string" : typeof known === "number" ? "number" : "atom";
      rows.push({ ...shared, kind, text: leaf(known, part), isBranch: false, isOpen: false, isMissing: false });
      if (part?.kind === "text" && sizeOf(part) < (part.total ?? 0)) pushMore(path, level, part);
      return;
    }
    const isList = Array.isArray(known);
    // What was fetched by opening it is open; what came with its surroundings, down to some depth.
    const usually = more !== null ? false : level < depth && (level === 0 || inner.length <= 100);
    const isOpen = usually !== toggled.has(path);
    rows.push({
      ...shared,
      kind: "branch",
      text: isOpen ? (isList ? "[" : "{") : closed(isList ? "list" : "mapping", total),
      isBranch: true,
      isOpen,
      isMissing: false,
    });
    if (!isOpen) return;
    inner.forEach(([key, child], index) => {
      add(child, pointer(path, key), key, isList, level + 1, index + 1, total);
    });
    if (part !== undefined && inner.length < total) pushMore(path, level, part);
  }

  function pushMore(path: string, level: number, part: Part) {
    const from = sizeOf(part);
    const left = (part.total ?? 0) - from;
    rows.push({
      path: `${path}#more`,
      level: level + 1,
      name: null,
      isIndex: false,
      kind: "more",
      text: `Show more: ${left.toLocaleString("en")} ${part.kind === "text" ? "characters" : left === 1 ? "entry" : "entries"} left`,
      isBranch: false,
      isOpen: false,
      isMissing: false,
      from,
      place: from + 1,
      siblings: part.total ?? from,
    });
  }
}

function entriesOf(value: unknown): [string, unknown][] | null {
  if (typeof value !== "object" || value === null) return null;
  return Array.isArray(value) ? value.map((one, index) => [String(index), one]) : Object.entries(value);
}

function closed(kind: string, total: number): string {
  if (kind === "text") return `"…" ${total.toLocaleString("en")} characters`;
  const [open, close] = kind === "list" ? ["[", "]"] : ["{", "}"];
  const [one, many] = kind === "list" ? ["item", "items"] : ["entry", "entries"];
  return total === 0 ? `${open}${close}` : `${open}…${close} ${total.toLocaleString("en")} ${total === 1 ? one : many}`;
}

function leaf(value: unknown, part: Part | undefined): string {
  if (Array.isArray(value)) return "[]";
  if (typeof value === "object" && value !== null) return "{}";
  if (typeof value !== "string") return String(value);
  if (part !== undefined && part.total !== null && part.total > value.length) return JSON.stringify(value);
  return value.length > LONGEST
    ? `${JSON.stringify(value.slice(0, LONGEST))} … (${value.length.toLocaleString("en")} characters)`
    : JSON.stringify(value);
}

/** The leaves of a value by their pointers, so far as they are there: to tell what differs from before. */
export function leavesOf(value: unknown, most = 5000): Map<string, string> {
  const found = new Map<string, string>();
  const go = (it: unknown, path: string) => {
    if (found.size >= most) return;
    const inner = entriesOf(it);
    if (inner === null || inner.length === 0 || moreOf(it) !== null) found.set(path, JSON.stringify(it) ?? "");
    else for (const [key, child] of inner) go(child, pointer(path, key));
  };
  go(value, "");
  return found;
}

/** The pointers whose leaves are new or differ, with all that they lie in. */
export function changesOf(before: ReadonlyMap<string, string>, now: ReadonlyMap<string, string>): Set<string> {
  const found = new Set<string>();
  for (const [path, text] of now) {
    if (before.get(path) === text) continue;
    for (let at = path; ; at = at.slice(0, at.lastIndexOf("/"))) {
      found.add(at);
      if (at === "") break;
    }
  }
  return found;
}
