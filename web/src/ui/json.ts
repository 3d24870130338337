/** JSON as rows: what of a value is in sight, given what is open. */
export interface JsonRow {
  path: string;
  level: number;
  /** The key or index; null of the value itself. */
  name: string | null;
  isIndex: boolean;
  kind: "string" | "number" | "atom" | "branch";
  text: string;
  isBranch: boolean;
  isOpen: boolean;
  place: number;
  siblings: number;
}

const LONGEST = 2000;

/** `toggled` are the paths whose state differs from what `depth` says: branches above it are open, those below are not. */
export function rowsOf(value: unknown, depth: number, toggled: ReadonlySet<string>): JsonRow[] {
  const rows: JsonRow[] = [];
  add(value, "$", null, false, 0, 1, 1);
  return rows;

  function add(
    it: unknown,
    path: string,
    name: string | null,
    isIndex: boolean,
    level: number,
    place: number,
    siblings: number,
  ) {
    const inner = entries(it);
    const isBranch = inner !== null && inner.length > 0;
    const isOpen = isBranch && (level < depth && (level === 0 || inner.length <= 200)) !== toggled.has(path);
    const kind =
      inner !== null ? "branch" : typeof it === "string" ? "string" : typeof it === "number" ? "number" : "atom";
    rows.push({ path, level, name, isIndex, kind, text: textOf(it, inner, isOpen), isBranch, isOpen, place, siblings });
    if (!isOpen || inner === null) return;
    const isList = Array.isArray(it);
    inner.forEach(([key, child], index) => {
      add(
        child,
        `${path}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`,
        key,
        isList,
        level + 1,
        index + 1,
        inner.length,
      );
    });
  }
}

function entries(value: unknown): [string, unknown][] | null {
  if (typeof value !== "object" || value === null) return null;
  return Array.isArray(value) ? value.map((one, index) => [String(index), one]) : Object.entries(value);
}

function textOf(value: unknown, inner: [string, unknown][] | null, isOpen: boolean): string {
  if (inner !== null) {
    const [open, close] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
    if (inner.length === 0) return `${open}${close}`;
    return isOpen ? open : `${open} ${inner.length.toLocaleString("en")} ${close}`;
  }
  if (typeof value === "string") {
    return value.length > LONGEST
      ? `${JSON.stringify(value.slice(0, LONGEST))} … (${value.length.toLocaleString("en")} characters)`
      : JSON.stringify(value);
  }
  return String(value);
}
