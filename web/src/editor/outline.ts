/**
 * The structure of a YAML text, also of one that is half written.
 *
 * A parser that stops at the first mistake is of no use beside a cursor, so this one goes by indentation and never fails: what it
 * does not understand is a scalar. It knows what our documents are made of: block and flow collections, quoted, plain and block
 * scalars, comments. Anchors and tags are skipped.
 */

export type Key = string | number;
export type Path = readonly Key[];
export type Plain = string | number | boolean | null | Plain[] | { [key: string]: Plain };

export type EntryKind = "map" | "list" | "scalar" | "block" | "empty";

export interface Entry {
  readonly path: Path;
  kind: EntryKind;
  /** Offsets of the key; of the dash for an entry of a list. */
  readonly keyFrom: number;
  readonly keyTo: number;
  /** Offsets of the scalar or of the flow collection. */
  from: number;
  to: number;
  /** Of a scalar or a block of text. */
  text: string;
  /** Whether the scalar is in quotes: then it is a text, whatever it looks like. */
  isQuoted: boolean;
  /** A collection in brackets; it is closed if its closing bracket is there. */
  isFlow: boolean;
  isClosed: boolean;
  /** 1-based; the last line is the last one with anything of the entry on it. */
  readonly line: number;
  endLine: number;
  readonly children: Entry[];
}

interface Frame {
  readonly entry: Entry;
  readonly kind: "map" | "list";
  readonly indent: number;
}

interface Line {
  readonly number: number;
  readonly from: number;
  readonly text: string;
}

export function outline(text: string): Entry {
  return new Reader(text).read();
}

const KEY =
  /^(?:"((?:[^"\\]|\\.)*)"|'((?:[^']|'')*)'|([^\s#"'[{&*!|>%@`][^#]*?|[^\s#"'[{&*!|>%@`].*?[^\s]))\s*:(?=\s|$)/;
const PROPERTIES = /^(?:[&!][^\s]*\s+)+/;

class Reader {
  readonly #lines: Line[];
  readonly #text: string;
  readonly #root: Entry;
  readonly #frames: Frame[] = [];
  #at = 0;

  constructor(text: string) {
    this.#text = text;
    this.#lines = linesOf(text);
    this.#root = fresh([], 0, 0, 1);
  }

  read(): Entry {
    while (this.#at < this.#lines.length) {
      const line = this.#lines[this.#at] as Line;
      this.#at += 1;
      const body = line.text.trimStart();
      if (body === "" || body.startsWith("#") || /^(---|\.\.\.)(\s|$)/.test(line.text)) continue;
      this.#item(line, line.text.length - body.length);
    }
    close(this.#root);
    return this.#root;
  }

  /** Reads what stands at a column: an entry of a list, an entry of a mapping, or the rest of a scalar. */
  #item(line: Line, column: number): void {
    const rest = line.text.slice(column);
    if (rest === "-" || rest.startsWith("- ")) {
      const owner = this.#owner("list", column);
      const entry = fresh(
        [...owner.path, owner.children.length],
        line.from + column,
        line.from + column + 1,
        line.number,
      );
      owner.children.push(entry);
      const inner = rest.slice(1);
      const more = inner.trimStart();
      if (more !== "" && !more.startsWith("#"))
        this.#inside(entry, line, column, column + 1 + inner.length - more.length);
      return;
    }
    const key = KEY.exec(rest);
    if (key === null) {
      this.#continued(line, column);
      return;
    }
    this.#pair(this.#owner("map", column), line, column, key);
  }

  #pair(owner: Entry, line: Line, column: number, key: RegExpExecArray): void {
    const name = key[1] ?? key[2]?.replaceAll("''", "'") ?? key[3] ?? "";
    const head = key[0];
    const keyTo = line.from + column + head.trimEnd().length - 1;
    const entry = fresh([...owner.path, name], line.from + column, keyTo, line.number);
    owner.children.push(entry);
    const after = line.text.slice(column + head.length);
    const value = after.trimStart();
    if (value === "" || value.startsWith("#")) return;
    this.#value(entry, line, column, column + head.length + after.length - value.length);
  }

  /** What follows a dash on its line. */
  #inside(entry: Entry, line: Line, dash: number, column: number): void {
    const rest = line.text.slice(column);
    if (rest === "-" || rest.startsWith("- ")) {
      entry.kind = "list";
      this.#frames.push({ entry, kind: "list", indent: column });
      this.#item(line, column);
      return;
    }
    const key = KEY.exec(rest);
    if (key !== null) {
      entry.kind = "map";
      this.#frames.push({ entry, kind: "map", indent: column });
      this.#pair(entry, line, column, key);
      return;
    }
    this.#value(entry, line, dash, column);
  }

  /** The value that begins at a column of a line; it may go on over lines that are indented deeper than `indent`. */
  #value(entry: Entry, line: Line, indent: number, column: number): void {
    const skipped = PROPERTIES.exec(line.text.slice(column))?.[0].length ?? 0;
    const start = column + skipped;
    const first = line.text[start];
    entry.from = line.from + start;
    if (first === "|" || first === ">") this.#block(entry, indent);
    else if (first === "{" || first === "[") this.#flow(entry, indent, line.from + start);
    else if (first === '"' || first === "'") this.#quoted(entry, line, indent, start, first);
    else {
      const plain = line.text
        .slice(start)
        .replace(/(^|\s)#.*$/, "")
        .trimEnd();
      entry.kind = plain === "" ? "empty" : "scalar";
      entry.text = plain;
      entry.to = entry.from + plain.length;
      entry.endLine = line.number;
    }
  }

  #block(entry: Entry, indent: number): void {
    entry.kind = "block";
    const texts: string[] = [];
    let end = this.#at;
    for (let at = this.#at; at < this.#lines.length; at += 1) {
      const { text, number } = this.#lines[at] as Line;
      if (text.trim() !== "") {
        if (indentOf(text) <= indent) break;
        entry.endLine = number;
        end = at + 1;
      }
      texts.push(text);
    }
    const kept = texts.slice(0, end - this.#at);
    const margin = Math.min(...kept.filter((one) => one.trim() !== "").map(indentOf), 1000);
    entry.text = kept.map((one) => one.slice(margin)).join("\n");
    const last = this.#lines[end - 1] as Line;
    entry.to = last.from + last.text.length;
    this.#at = end;
  }

  #quoted(entry: Entry, line: Line, indent: number, start: number, quote: string): void {
    const limit = this.#limit(line, indent);
    const end = quoteEnd(this.#text, line.from + start, limit, quote);
    entry.kind = "scalar";
    entry.isQuoted = true;
    entry.to = end;
    entry.text = unquoted(this.#text.slice(line.from + start, end));
    entry.endLine = this.#skipTo(end, line.number);
  }

  #flow(entry: Entry, indent: number, from: number): void {
    const line = this.#lines[this.#at - 1] as Line;
    const end = new Flow(this.#text, this.#limit(line, indent), (offset) => this.#lineAt(offset)).read(entry, from);
    entry.endLine = this.#skipTo(end, line.number);
  }

  /** The end of the lines that a value which begins on this line can go on over. */
  #limit(line: Line, indent: number): number {
    let to = line.from + line.text.length;
    for (let at = this.#at; at < this.#lines.length; at += 1) {
      const { text, from } = this.#lines[at] as Line;
      // A closing bracket may stand under the key.
      if (text.trim() !== "" && indentOf(text) <= indent && !/^\s*[\]}]/.test(text)) break;
      to = from + text.length;
    }
    return to;
  }

  /** Goes on after the line with this offset on it, and says which that is. */
  #skipTo(offset: number, least: number): number {
    const last = Math.max(least, this.#lineAt(offset));
    this.#at = Math.max(this.#at, last);
    return last;
  }

  #lineAt(offset: number): number {
    let low = 0;
    let high = this.#lines.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#lines[middle] as Line).from <= offset) low = middle;
      else high = middle - 1;
    }
    return low + 1;
  }

  /** A line that is neither a key nor an entry of a list: a plain scalar that goes on, or one below its key. */
  #continued(line: Line, column: number): void {
    while (this.#frames.length > 0 && (this.#frames.at(-1) as Frame).indent >= column) this.#frames.pop();
    const owner = this.#frames.at(-1)?.entry ?? this.#root;
    const last = owner.children.at(-1) ?? owner;
    if (last.kind === "empty") this.#value(last, line, column - 1, column);
    else if (last.kind === "scalar" && !last.isQuoted) {
      const more = line.text
        .slice(column)
        .replace(/(^|\s)#.*$/, "")
        .trimEnd();
      last.text = `${last.text} ${more}`;
      last.to = line.from + column + more.length;
      last.endLine = line.number;
    }
  }

  /** The collection that an entry at this column belongs to; makes the open entry above into one if there is none. */
  #owner(kind: "map" | "list", column: number): Entry {
    while (this.#frames.length > 0) {
      const top = this.#frames.at(-1) as Frame;
      if (top.indent > column || (top.indent === column && top.kind === "list" && kind === "map")) this.#frames.pop();
      else break;
    }
    const top = this.#frames.at(-1);
    if (top !== undefined && top.indent === column && top.kind === kind) return top.entry;
    const parent = top?.entry ?? this.#root;
    const open = parent.children.at(-1) ?? parent;
    // Two collections cannot share an entry: what is indented oddly goes to the one that is there.
    if (open.kind !== "empty" && !(open.kind === (kind === "map" ? "map" : "list"))) return parent;
    open.kind = kind;
    this.#frames.push({ entry: open, kind, indent: column });
    return open;
  }
}

/** A flow collection: `{a: 1, b: [x, y]}`, possibly without its end. */
class Flow {
  readonly #text: string;
  readonly #limit: number;
  readonly #lineAt: (offset: number) => number;

  constructor(text: string, limit: number, lineAt: (offset: number) => number) {
    this.#text = text;
    this.#limit = limit;
    this.#lineAt = lineAt;
  }

  /** Returns the offset after it. */
  read(entry: Entry, from: number): number {
    entry.from = from;
    const first = this.#text[from];
    const end =
      first === "{"
        ? this.#map(entry, from + 1)
        : first === "["
          ? this.#list(entry, from + 1)
          : this.#scalar(entry, from);
    entry.to = end;
    entry.endLine = this.#lineAt(end);
    entry.isFlow = first === "{" || first === "[";
    entry.isClosed = entry.isFlow && this.#text[end - 1] === (first === "{" ? "}" : "]");
    return end;
  }

  #map(entry: Entry, start: number): number {
    entry.kind = "map";
    let at = this.#space(start);
    while (at < this.#limit) {
      const mark = this.#text[at];
      if (mark === "}") return at + 1;
      if (mark === ",") {
        at = this.#space(at + 1);
        continue;
      }
      if (mark === "]") return at;
      const end = this.#wordEnd(at, true);
      const child = fresh([...entry.path, unquoted(this.#text.slice(at, end).trimEnd())], at, end, this.#lineAt(at));
      entry.children.push(child);
      at = this.#space(Math.max(end, at));
      if (this.#text[at] === ":") {
        at = this.#space(at + 1);
        if (at < this.#limit && !",}]".includes(this.#text[at] as string)) at = this.#space(this.read(child, at));
        else child.from = child.to = at;
      } else if (end === at && !",}]".includes(this.#text[at] ?? "")) at = this.#space(at + 1);
    }
    return this.#limit;
  }

  #list(entry: Entry, start: number): number {
    entry.kind = "list";
    let at = this.#space(start);
    while (at < this.#limit) {
      const mark = this.#text[at];
      if (mark === "]") return at + 1;
      if (mark === ",") {
        at = this.#space(at + 1);
        continue;
      }
      if (mark === "}") return at;
      const child = fresh([...entry.path, entry.children.length], at, at, this.#lineAt(at));
      entry.children.push(child);
      const next = this.#space(this.read(child, at));
      at = next > at ? next : at + 1;
    }
    return this.#limit;
  }

  #scalar(entry: Entry, from: number): number {
    const end = this.#wordEnd(from, false);
    const raw = this.#text.slice(from, end).trimEnd();
    entry.kind = raw === "" ? "empty" : "scalar";
    entry.isQuoted = raw.startsWith('"') || raw.startsWith("'");
    entry.text = unquoted(raw);
    return from + raw.length;
  }

  #wordEnd(from: number, isKey: boolean): number {
    const quote = this.#text[from];
    if (quote === '"' || quote === "'") return quoteEnd(this.#text, from, this.#limit, quote);
    let at = from;
    while (at < this.#limit) {
      const mark = this.#text[at] as string;
      if (",]}".includes(mark) || (mark === "\n" && isKey)) break;
      if (mark === ":" && isKey && /[\s,\]}]|$/.test(this.#text[at + 1] ?? "\n")) break;
      if (mark === "#" && /\s/.test(this.#text[at - 1] ?? "")) break;
      at += 1;
    }
    return at;
  }

  #space(from: number): number {
    let at = from;
    while (at < this.#limit) {
      const mark = this.#text[at] as string;
      if (mark === "#" && /\s/.test(this.#text[at - 1] ?? "\n")) {
        const end = this.#text.indexOf("\n", at);
        at = end < 0 ? this.#limit : end;
      } else if (/\s/.test(mark)) at += 1;
      else break;
    }
    return Math.min(at, this.#limit);
  }
}

function fresh(path: Path, keyFrom: number, keyTo: number, line: number): Entry {
  return {
    path,
    kind: "empty",
    keyFrom,
    keyTo,
    from: keyTo,
    to: keyTo,
    text: "",
    isQuoted: false,
    isFlow: false,
    isClosed: false,
    line,
    endLine: line,
    children: [],
  };
}

/** Gives every collection the last line and the last offset of what is in it. */
function close(entry: Entry): void {
  for (const child of entry.children) {
    close(child);
    if (child.endLine > entry.endLine) entry.endLine = child.endLine;
    if (child.to > entry.to) entry.to = child.to;
  }
}

function linesOf(text: string): Line[] {
  let from = 0;
  return text.split("\n").map((raw, at) => {
    const line = { number: at + 1, from, text: raw.replace(/\r$/, "") };
    from += raw.length + 1;
    return line;
  });
}

function indentOf(text: string): number {
  return text.length - text.trimStart().length;
}

function quoteEnd(text: string, from: number, limit: number, quote: string): number {
  for (let at = from + 1; at < limit; at += 1) {
    if (quote === '"' && text[at] === "\\") at += 1;
    else if (text[at] === quote) {
      if (quote === "'" && text[at + 1] === "'") at += 1;
      else return at + 1;
    }
  }
  // Not closed: it ends with its line, so that what follows is still read.
  const end = text.indexOf("\n", from);
  return end < 0 || end > limit ? limit : end;
}

function unquoted(raw: string): string {
  if (raw.startsWith('"')) {
    const inner = raw.slice(1, raw.endsWith('"') && raw.length > 1 ? -1 : undefined);
    return inner.replace(/\\(["\\/nt])/g, (_, mark: string) => ({ n: "\n", t: "\t" })[mark] ?? mark);
  }
  if (raw.startsWith("'"))
    return raw.slice(1, raw.endsWith("'") && raw.length > 1 ? -1 : undefined).replaceAll("''", "'");
  return raw;
}

export function entryAt(root: Entry, path: Path): Entry | undefined {
  let entry: Entry | undefined = root;
  for (const key of path) entry = entry?.children.find((child) => child.path.at(-1) === key);
  return entry;
}

export function keysOf(entry: Entry | undefined): string[] {
  return entry?.kind === "map" ? entry.children.map((child) => String(child.path.at(-1))) : [];
}

/** The value of an entry, as YAML 1.2 reads it. */
export function plain(entry: Entry): Plain {
  if (entry.kind === "map")
    return Object.fromEntries(entry.children.map((one) => [String(one.path.at(-1)), plain(one)]));
  if (entry.kind === "list") return entry.children.map(plain);
  if (entry.kind === "block" || entry.isQuoted) return entry.text;
  return entry.kind === "empty" ? null : scalar(entry.text);
}

/** A plain scalar as YAML 1.2 reads it. */
export function scalar(text: string): string | number | boolean | null {
  if (/^(null|Null|NULL|~|)$/.test(text)) return null;
  if (/^(true|True|TRUE)$/.test(text)) return true;
  if (/^(false|False|FALSE)$/.test(text)) return false;
  if (/^[-+]?(0|[1-9][0-9]*)$/.test(text) || /^[-+]?(\.[0-9]+|[0-9]+\.[0-9]*)([eE][-+]?[0-9]+)?$/.test(text)) {
    return Number(text);
  }
  return /^[-+]?[0-9]+[eE][-+]?[0-9]+$/.test(text) ? Number(text) : text;
}

/** The innermost entry on a line. */
export function entryOnLine(root: Entry, line: number): Entry {
  const inner = root.children.findLast((child) => child.line <= line && line <= child.endLine);
  return inner === undefined ? root : entryOnLine(inner, line);
}
