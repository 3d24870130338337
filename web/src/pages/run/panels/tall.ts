/**
 * The geometry of lists that may be taller than a browser lets an element be.
 *
 * Law: rows have one height. A position in the list (`top`, in pixels of the list) and a position of the scroll bar (`scroll`) map onto
 * each other linearly, and are the same number as long as the list fits.
 */

/** Chromium ends at 33 million pixels, Firefox at 17 million; beyond about 15 million Safari rounds positions visibly. */
export const TALLEST = 12_000_000;

export interface Geometry {
  count: number;
  row: number;
  /** The height of the window onto the list. */
  view: number;
}

const heightOf = ({ count, row }: Geometry) => count * row;

/** The height of the element that makes the scroll bar. */
export function sizerHeight(list: Geometry): number {
  return Math.min(TALLEST, heightOf(list));
}

export function isScaled(list: Geometry): boolean {
  return heightOf(list) > TALLEST;
}

const furthest = (list: Geometry) => Math.max(0, heightOf(list) - list.view);

export function topOf(scroll: number, list: Geometry): number {
  if (!isScaled(list)) return clamp(scroll, 0, furthest(list));
  return clamp(scroll / (TALLEST - list.view), 0, 1) * furthest(list);
}

export function scrollOf(top: number, list: Geometry): number {
  const within = clamp(top, 0, furthest(list));
  if (!isScaled(list)) return within;
  return (within / furthest(list)) * (TALLEST - list.view);
}

/** The rows in sight, as a half-open range, with some more at either end. */
export function inSight(top: number, list: Geometry, over = 8): { first: number; end: number } {
  const first = Math.max(0, Math.floor(top / list.row) - over);
  return { first, end: Math.min(list.count, Math.ceil((top + list.view) / list.row) + over) };
}

/** Where to scroll to, so that a row can be seen; the present place when it can be. */
export function reveal(
  index: number,
  top: number,
  list: Geometry,
  align: "nearest" | "centre" | "start" = "nearest",
): number {
  const start = index * list.row;
  const end = start + list.row;
  const isSeen = start >= top && end <= top + list.view;
  let wanted = top;
  if (align === "start") wanted = start;
  else if (align === "centre") wanted = isSeen ? top : start - (list.view - list.row) / 2;
  else if (start < top) wanted = start;
  else if (end > top + list.view) wanted = end - list.view;
  return clamp(wanted, 0, furthest(list));
}

export function isAtEnd(top: number, list: Geometry): boolean {
  return top >= furthest(list) - list.row / 2;
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(Math.max(value, least), Math.max(least, most));
}
