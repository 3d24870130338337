/** Lines and columns as Penstock counts them (from 1, by characters) and offsets as JavaScript does (from 0, by UTF-16 units). */

/** The offset of a column within a line. */
export function offsetIn(line: string, column: number): number {
  let offset = 0;
  for (let left = column - 1; left > 0 && offset < line.length; left -= 1) {
    offset += (line.codePointAt(offset) ?? 0) > 0xffff ? 2 : 1;
  }
  return offset;
}

/** The column of an offset within a line. */
export function columnOf(line: string, offset: number): number {
  return [...line.slice(0, offset)].length + 1;
}

/**
 * What a problem underlines on its line: never nothing, because what is not seen is not there. Without columns it is the whole
 * content of the line, without an end the word at the column.
 */
export function spanIn(
  line: string,
  column: number | null | undefined,
  endColumn: number | null | undefined,
): [number, number] {
  const first = line.length - line.trimStart().length;
  const last = Math.max(line.trimEnd().length, first);
  if (!column) return widened(first, last, line);
  const from = Math.min(offsetIn(line, column), line.length);
  if (endColumn && endColumn > column) return widened(from, Math.min(offsetIn(line, endColumn), line.length), line);
  const word = /^[\w.@/-]+|^\S/.exec(line.slice(from))?.[0] ?? "";
  return widened(from, from + word.length, line);
}

function widened(from: number, to: number, line: string): [number, number] {
  if (to > from) return [from, to];
  return from > 0 ? [from - 1, Math.max(from, to)] : [0, Math.min(1, line.length)];
}
