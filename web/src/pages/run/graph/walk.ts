/** Moving the selection with the arrows: in the direction of the drawing along links, across it to the neighbour. */
import type { Direction, Layout, Rect } from "./layout";
import { BOX_HEAD } from "./measure";
import type { Picture } from "./picture";

export type Way = "left" | "right" | "up" | "down";

export const WAYS: Readonly<Record<string, Way>> = {
  ArrowLeft: "left",
  ArrowRight: "right",
  ArrowUp: "up",
  ArrowDown: "down",
};

/** How far ahead something is, and how far to the side. */
function away(from: Rect, to: Rect, way: Way): { ahead: number; aside: number } {
  const dx = to.x + to.width / 2 - from.x - from.width / 2;
  const dy = to.y + to.height / 2 - from.y - from.height / 2;
  const isSideways = way === "left" || way === "right";
  const sign = way === "left" || way === "up" ? -1 : 1;
  return { ahead: (isSideways ? dx : dy) * sign, aside: Math.abs(isSideways ? dy : dx) };
}

export function walked(
  picture: Picture,
  layout: Layout,
  from: string | null,
  way: Way,
  direction: Direction,
): string | null {
  const rects: Readonly<Record<string, Rect>> = { ...layout.boxes, ...layout.cards };
  const around = from === null ? undefined : layout.boxes[from];
  // From a box one goes on from its title: what is in it lies ahead.
  const head =
    around === undefined
      ? undefined
      : direction === "right"
        ? { ...around, width: 0 }
        : { ...around, height: BOX_HEAD };
  const start = head ?? (from === null ? undefined : rects[from]);
  if (from === null || start === undefined) return first(picture, layout);
  /** The nearest that is not too far to the side. */
  const best = (ids: readonly string[], steepest: number): string | null => {
    let found: string | null = null;
    let least = Number.POSITIVE_INFINITY;
    for (const id of ids) {
      const rect = rects[id];
      if (rect === undefined || id === from) continue;
      const { ahead, aside } = away(start, rect, way);
      if (ahead <= 1 || aside > ahead * steepest || ahead + 2 * aside >= least) continue;
      least = ahead + 2 * aside;
      found = id;
    }
    return found;
  };
  const cards = picture.cards.map((card) => card.id);
  const isAlong = (direction === "right") === (way === "left" || way === "right");
  if (!isAlong) return best(cards, 1.2);
  const linked = picture.wires.flatMap((wire) =>
    wire.source === from ? [wire.target] : wire.target === from ? [wire.source] : [],
  );
  return best(linked, Number.POSITIVE_INFINITY) ?? best(cards, 2);
}

/** What a walk begins with: what nothing leads to, from the top left. */
export function first(picture: Picture, layout: Layout): string | null {
  const into = new Set(picture.wires.filter((wire) => wire.source !== wire.target).map((wire) => wire.target));
  const order = [...picture.cards].sort((one, other) => {
    const a = layout.cards[one.id];
    const b = layout.cards[other.id];
    return (
      Number(into.has(one.id)) - Number(into.has(other.id)) || (a?.x ?? 0) + (a?.y ?? 0) - (b?.x ?? 0) - (b?.y ?? 0)
    );
  });
  return order[0]?.id ?? null;
}
