/** Puts a box that floats beside what it belongs to, within the window. */
export type Side = "below-centre" | "below-start" | "below-end";
const GAP = 4;
const EDGE = 8;

export function place(box: HTMLElement, anchor: Element, side: Side) {
  const at = anchor.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = box;
  const start =
    side === "below-centre" ? at.left + (at.width - width) / 2 : side === "below-end" ? at.right - width : at.left;
  const hasRoom = at.bottom + GAP + height + EDGE <= window.innerHeight || at.top < height + GAP + EDGE;
  box.style.left = `${Math.max(EDGE, Math.min(start, window.innerWidth - width - EDGE))}px`;
  box.style.top = `${hasRoom ? at.bottom + GAP : at.top - height - GAP}px`;
}
