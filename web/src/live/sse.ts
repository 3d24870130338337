/** Server-sent events, read from a stream of text. EventSource would hide heartbeats, which are comments, and why it was refused. */
export interface Message {
  event: string;
  data: string;
  id: string | null;
}

export class SseParser {
  #rest = "";
  #event = "";
  #data: string[] = [];
  #id: string | null = null;

  /** The messages that this piece completes; a piece may end anywhere. */
  push(piece: string): Message[] {
    const found: Message[] = [];
    const text = this.#rest + piece;
    // A carriage return at the end may be half of a line end.
    const safe = text.endsWith("\r") ? text.length - 1 : text.length;
    let start = 0;
    for (;;) {
      const end = lineEnd(text, start, safe);
      if (end === null) break;
      this.#line(text.slice(start, end.at), found);
      start = end.next;
    }
    this.#rest = text.slice(start);
    return found;
  }

  #line(line: string, found: Message[]) {
    if (line === "") {
      if (this.#data.length > 0) {
        found.push({ event: this.#event || "message", data: this.#data.join("\n"), id: this.#id });
      }
      this.#event = "";
      this.#data = [];
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return; // A comment: a sign of life.
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (field === "data") this.#data.push(value);
    else if (field === "event") this.#event = value;
    else if (field === "id" && !value.includes("\0")) this.#id = value;
  }
}

function lineEnd(text: string, from: number, to: number): { at: number; next: number } | null {
  for (let at = from; at < to; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 10) return { at, next: at + 1 };
    if (code === 13) return { at, next: text.charCodeAt(at + 1) === 10 ? at + 2 : at + 1 };
  }
  return null;
}
