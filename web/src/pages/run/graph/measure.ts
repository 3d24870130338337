/** How large things are drawn. It depends on the document alone, so that nothing moves while a run goes on. */
import type { Box, Card, Wire } from "./picture";

export interface Size {
  width: number;
  height: number;
}

const TITLE = 7.1;
const SMALL = 6.1;
const LEAST = 160;
const MOST = 236;

export const BOX_HEAD = 30;
export const BOX_PAD = 18;

/** It may have executions inside that one can step into. */
function runsOthers({ node }: Card): boolean {
  return (
    node !== null && (node.calls !== null || node.tasks.some((task) => task.kind === "playbook" || task.kind === "job"))
  );
}

/** Icon, title, and what stands at the end of its line. */
export function cardSize(card: Card): Size {
  const title = 12 + 22 + card.title.length * TITLE + (card.inside > 0 || runsOthers(card) ? 44 : 0) + 12;
  const below = 12 + 22 + card.type.length * SMALL + 62 + 12;
  const width = Math.round(Math.min(MOST, Math.max(LEAST, title, below)));
  return { width, height: card.isLoop ? 66 : 46 };
}

export function boxLeast(box: Box): Size {
  return { width: Math.min(360, 100 + box.title.length * TITLE), height: BOX_HEAD + 2 * BOX_PAD };
}

/** Room for a count of rows, with the rate below it where links go down, or for the words of a guard. */
export function labelSize(wire: Wire, isRight: boolean): Size {
  if (wire.kind === "data")
    return { width: 72 + (wire.label === "" ? 0 : (wire.label.length + 2) * SMALL), height: isRight ? 14 : 28 };
  return { width: wire.label === "" ? 0 : Math.round(wire.label.length * SMALL + 8), height: 14 };
}
