/**
 * Where a cursor is in a YAML text.
 *
 * The word at the cursor is replaced by a marker and the text is read again: so the one reader of `outline.ts` says where the
 * word would belong, whatever is missing around it.
 */
import { type Entry, entryAt, keysOf, outline, type Path } from "./outline";

const MARK = "\u{e000}here\u{e000}";

export interface Place {
  /** `key`: a key is being written. `value`: a scalar. `item`: an entry of a list, which may be a scalar or begin a mapping. */
  readonly role: "key" | "value" | "item" | "text";
  /** For a key the mapping it belongs to; else the entry itself. */
  readonly path: Path;
  /** The word at the cursor up to it, and its offsets in the text. */
  readonly word: string;
  readonly from: number;
  readonly to: number;
  /** The keys that the mapping has already. */
  readonly keys: readonly string[];
  readonly isFlow: boolean;
  /** A key is followed by a colon already. */
  readonly hasColon: boolean;
  /** The line up to the cursor. */
  readonly line: string;
  /** The whole text without the word. */
  readonly root: Entry;
}

export function placeAt(text: string, offset: number): Place | null {
  const lineFrom = text.lastIndexOf("\n", offset - 1) + 1;
  const lineEnd = end(text, offset);
  const before = text.slice(lineFrom, offset);
  if (/(^|\s)#[^"']*$/.test(before) && !/["'{[]/.test(before)) return null;
  const bare = outline(text);
  const block = blockAt(bare, text, offset);
  if (block !== undefined) {
    const word = /[^\s]*$/.exec(before)?.[0] ?? "";
    return {
      role: "text",
      path: block.path,
      word,
      from: offset - word.length,
      to: offset,
      keys: [],
      isFlow: false,
      hasColon: false,
      line: before,
      root: bare,
    };
  }
  const flow = flowAt(bare, offset);
  return flow === undefined ? inBlock(text, offset, lineFrom, lineEnd) : inFlow(text, offset, flow);
}

function inBlock(text: string, offset: number, lineFrom: number, lineEnd: number): Place | null {
  const before = text.slice(lineFrom, offset);
  const after = text.slice(offset, lineEnd);
  const pair = /^(\s*(?:- +)*)((?:"[^"]*"|'[^']*'|[^\s#"'][^#]*?)\s*:\s+)(.*)$/.exec(before);
  if (pair !== null) {
    const word = pair[3] ?? "";
    const rest = /^[^\s#]*/.exec(after)?.[0] ?? "";
    const root = outline(`${text.slice(0, offset - word.length)}${MARK}${text.slice(offset + rest.length)}`);
    const found = marked(root);
    if (found === undefined) return null;
    const isOpen = word.startsWith('"') || word.startsWith("'");
    const from = offset - word.length;
    return {
      role: "value",
      path: found.path,
      word: isOpen ? word.slice(1) : word,
      from: isOpen ? from + 1 : from,
      to: offset + rest.replace(/["']$/, "").length,
      keys: [],
      isFlow: false,
      hasColon: false,
      line: before,
      root,
    };
  }
  const [, lead = "", word = ""] = /^(\s*(?:- *)*)(.*)$/.exec(before) ?? [];
  if (/["']/.test(word.slice(1)) || /^\s*-$/.test(before)) return null;
  const rest = /^[\w.@/-]*/.exec(after)?.[0] ?? "";
  const hasColon = /^\s*:(\s|$)/.test(after.slice(rest.length));
  const tail = hasColon ? "" : ":";
  const root = outline(`${text.slice(0, offset - word.length)}${MARK}${tail}${text.slice(offset + rest.length)}`);
  const found = marked(root);
  if (found === undefined) return null;
  const owner = found.path.slice(0, -1);
  const isItem = lead.includes("-");
  return {
    role: isItem && !hasColon ? "item" : "key",
    path: owner,
    word,
    from: offset - word.length,
    to: offset + rest.length,
    keys: keysOf(entryAt(root, owner)).filter((key) => key !== MARK),
    isFlow: false,
    hasColon,
    line: before,
    root,
  };
}

function inFlow(text: string, offset: number, flow: Entry): Place | null {
  const inner = text.slice(flow.from, offset);
  const open = openers(inner);
  const mark = open.at(-1);
  if (mark === undefined) return null;
  const isKey = mark.kind === "{" && !mark.hasColon;
  const rest = /^[^,\]}\s:]*/.exec(text.slice(offset))?.[0] ?? "";
  const from = flow.from + mark.wordFrom;
  const raw = text.slice(from, offset);
  const isOpen = /^["']/.test(raw);
  const hasColon = /^\s*:/.test(text.slice(offset + rest.length));
  const put = isKey && !hasColon ? `${MARK}: ` : MARK;
  // A bracket that was never closed would swallow what follows.
  const root = outline(`${text.slice(0, from)}${put}${text.slice(offset + rest.length)}`);
  const found = marked(root);
  if (found === undefined) return null;
  const path = isKey ? found.path.slice(0, -1) : found.path;
  return {
    role: isKey ? "key" : mark.kind === "[" ? "item" : "value",
    path,
    word: isOpen ? raw.slice(1) : raw,
    from: isOpen ? from + 1 : from,
    to: offset + rest.replace(/["']$/, "").length,
    keys: isKey ? keysOf(entryAt(root, path)).filter((key) => key !== MARK) : [],
    isFlow: true,
    hasColon,
    line: text.slice(text.lastIndexOf("\n", offset - 1) + 1, offset),
    root,
  };
}

interface Opener {
  kind: "{" | "[";
  hasColon: boolean;
  wordFrom: number;
}

/** The brackets that are open at the end of a text, and where the word at its end begins. */
function openers(text: string): Opener[] {
  const open: Opener[] = [];
  let quote = "";
  for (let at = 0; at < text.length; at += 1) {
    const mark = text[at] as string;
    const top = open.at(-1);
    if (quote !== "") {
      if (mark === "\\" && quote === '"') at += 1;
      else if (mark === quote) quote = "";
      continue;
    }
    if ((mark === '"' || mark === "'") && top?.wordFrom === at) quote = mark;
    else if (mark === "{" || mark === "[") open.push({ kind: mark, hasColon: false, wordFrom: at + 1 });
    else if (mark === "}" || mark === "]") open.pop();
    else if (top !== undefined && mark === ",") {
      top.hasColon = false;
      top.wordFrom = at + 1;
    } else if (top !== undefined && mark === ":" && /\s/.test(text[at + 1] ?? " ")) {
      top.hasColon = true;
      top.wordFrom = at + 1;
    } else if (top !== undefined && /\s/.test(mark) && top.wordFrom === at) top.wordFrom = at + 1;
  }
  return open;
}

function marked(entry: Entry): Entry | undefined {
  if (entry.path.at(-1) === MARK || (entry.kind === "scalar" && entry.text.includes(MARK))) return entry;
  for (const child of entry.children) {
    const found = marked(child);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The block of text that an offset is in; an empty line below it belongs to it when the cursor is indented. */
function blockAt(entry: Entry, text: string, offset: number): Entry | undefined {
  for (const child of entry.children) {
    if (child.kind === "block") {
      const head = end(text, child.from);
      if (offset > head && offset <= child.to) return child;
      const between = text.slice(child.to, offset);
      const column = offset - text.lastIndexOf("\n", offset - 1) - 1;
      const keyColumn = child.keyFrom - text.lastIndexOf("\n", child.keyFrom) - 1;
      if (offset > child.to && /^\s*$/.test(between) && between.split("\n").length <= 2 && column > keyColumn)
        return child;
    }
    const found = blockAt(child, text, offset);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The outermost flow collection that an offset is in. */
function flowAt(entry: Entry, offset: number): Entry | undefined {
  for (const child of entry.children) {
    if (child.isFlow && offset > child.from && (child.isClosed ? offset < child.to : offset <= child.to)) return child;
    const found = flowAt(child, offset);
    if (found !== undefined) return found;
  }
  return undefined;
}

function end(text: string, offset: number): number {
  const at = text.indexOf("\n", offset);
  return at < 0 ? text.length : at;
}
