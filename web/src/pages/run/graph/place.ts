/** Lays a picture out: from what was kept, by our own layout, or by ELK. */
import type { Graph } from "../context";
import { keepLayout, keptLayout } from "./kept";
import { legible } from "./labels";
import { layered } from "./layered";
import { type Direction, isSimple, type Layout, planned } from "./layout";
import type { Picture } from "./picture";

/** The same key has the same layout. */
export function layoutKey(
  graph: Pick<Graph, "digest">,
  scope: string,
  open: ReadonlySet<string>,
  direction: Direction,
): string {
  return JSON.stringify([graph.digest, scope, direction, [...open].sort()]);
}

/** The layout if it is there at once; null when ELK has to be asked. */
export function laidOutNow(key: string, picture: Picture, direction: Direction): Layout | null {
  const kept = keptLayout(key);
  if (kept !== undefined && fits(kept, picture)) return kept;
  const plan = planned(picture, direction);
  return isSimple(plan) ? legible(layered(plan), plan) : null;
}

export async function laidOut(key: string, picture: Picture, direction: Direction): Promise<Layout> {
  const plan = planned(picture, direction);
  let made: Layout;
  try {
    const { laidOutByElk } = await import("./elk");
    made = legible(await laidOutByElk(plan), plan);
    if (!fits(made, picture)) throw new Error("the layout lacks something");
  } catch {
    // Less pretty, but there: the graph is what people came for.
    return legible(layered(plan), plan);
  }
  keepLayout(key, made);
  return made;
}

/** A layout of the storage is somebody else's text until it has been looked at. */
function fits(layout: Layout, picture: Picture): boolean {
  return (
    picture.cards.every((card) => card.id in layout.cards) &&
    picture.boxes.every((box) => box.id in layout.boxes) &&
    picture.wires.every((wire) => (layout.routes[wire.id]?.points.length ?? 0) > 1)
  );
}

/** The direction in which a picture can be drawn larger in a pane; to the right if it makes no difference. */
export function betterDirection(picture: Picture, pane: { width: number; height: number }): Direction {
  if (picture.cards.length > 150 || pane.width <= 0 || pane.height <= 0) return "right";
  const zoom = (direction: Direction) => {
    const { width, height } = layered(planned(picture, direction));
    return Math.min(1, pane.width / Math.max(1, width), pane.height / Math.max(1, height));
  };
  return zoom("down") > zoom("right") * 1.25 ? "down" : "right";
}
