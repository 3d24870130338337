/**
 * Lines as a terminal would show them, as plain data: runs of text with a colour and a weight.
 *
 * What a program prints is never markup. Colours become the names of our own classes; every other control sequence is dropped.
 */

export type Ink = "black" | "red" | "green" | "yellow" | "blue" | "magenta" | "cyan" | "white";
export interface Run {
  text: string;
  ink: Ink | null;
  isBold: boolean;
  isFaint: boolean;
  isUnderlined: boolean;
}

const INKS: readonly Ink[] = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
// CSI, OSC (ended by BEL or ST), and the other escape sequences, of two characters.
const ESCAPES =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this looks for.
  /\x1b\[([0-9;:?]*)[ -/]*([@-~])|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]?|\x9b([0-9;:?]*)([@-~])/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: as above; a tab may stay.
const CONTROLS = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/g;

/** The text alone. */
export function plain(line: string): string {
  return lastWritten(line.replace(ESCAPES, "")).replace(CONTROLS, "");
}

export function runsOf(line: string): Run[] {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: as above.
  if (!/[\x00-\x08\x0b-\x1f\x7f-\x9f]/.test(line)) return line === "" ? [] : [{ ...PLAIN, text: line }];
  const runs: Run[] = [];
  let now: Omit<Run, "text"> = PLAIN;
  let at = 0;
  const put = (text: string) => {
    const clean = text.replace(CONTROLS, "");
    if (clean !== "") runs.push({ text: clean, ...now });
  };
  const shown = lastWritten(line);
  for (const found of shown.matchAll(ESCAPES)) {
    put(shown.slice(at, found.index));
    at = found.index + found[0].length;
    if ((found[2] ?? found[4]) === "m") now = styled(now, found[1] ?? found[3] ?? "");
  }
  put(shown.slice(at));
  return runs;
}

const PLAIN: Omit<Run, "text"> = { ink: null, isBold: false, isFaint: false, isUnderlined: false };

/** A progress bar writes its line over and over: what it wrote last is what a terminal would show. */
function lastWritten(line: string): string {
  const end = line.replace(/\r+$/, "");
  return end.slice(end.lastIndexOf("\r") + 1);
}

function styled(before: Omit<Run, "text">, codes: string): Omit<Run, "text"> {
  let now = { ...before };
  const all = codes === "" ? [0] : codes.split(/[;:]/).map(Number);
  for (let at = 0; at < all.length; at += 1) {
    const code = all[at] ?? 0;
    if (code === 0) now = { ...PLAIN };
    else if (code === 1) now.isBold = true;
    else if (code === 2) now.isFaint = true;
    else if (code === 4) now.isUnderlined = true;
    else if (code === 22) now = { ...now, isBold: false, isFaint: false };
    else if (code === 24) now.isUnderlined = false;
    else if (code >= 30 && code <= 37) now.ink = INKS[code - 30] ?? null;
    else if (code >= 90 && code <= 97) now.ink = INKS[code - 90] ?? null;
    else if (code === 39) now.ink = null;
    else if (code === 38 || code === 48) {
      // A colour out of 256, or out of all: our few cannot show it, but its numbers must not be taken for codes.
      const kind = all[at + 1];
      if (code === 38) now.ink = kind === 5 ? (INKS[(all[at + 2] ?? 99) % 8] ?? null) : null;
      if (code === 38 && kind === 5 && (all[at + 2] ?? 99) > 15) now.ink = null;
      at += kind === 5 ? 2 : kind === 2 ? 4 : 0;
    }
  }
  return now;
}
