/** Where things are drawn. Both engines (our own for small graphs, ELK for the rest) give the same kind of answer. */
import { boxLeast, cardSize, labelSize, type Size } from "./measure";
import type { Picture } from "./picture";

export type Direction = "right" | "down";

export interface Rect extends Size {
  x: number;
  y: number;
}

export type Point = readonly [x: number, y: number];

/** A link as it is drawn: corners from its source to its target, and where its label stands. */
export interface Route {
  points: readonly Point[];
  label: Label;
}

/** Above a link to the right, with the rate below the link, or both below it; beside a link that goes down, on the side that has room. */
export interface Label {
  x: number;
  y: number;
  anchor: "start" | "middle" | "end";
  isBelow?: boolean;
}

export interface Layout extends Size {
  /** In the coordinates of the whole, not of the box around. */
  cards: Readonly<Record<string, Rect>>;
  boxes: Readonly<Record<string, Rect>>;
  routes: Readonly<Record<string, Route>>;
}

/** What is laid out: sizes and links without the words. It can be sent to a worker. */
export interface Plan {
  direction: Direction;
  items: readonly PlanItem[];
  links: readonly PlanLink[];
}

export interface PlanItem extends Size {
  id: string;
  box: string | null;
  isBox: boolean;
}

export interface PlanLink {
  id: string;
  source: string;
  target: string;
  label: Size;
}

export function planned(picture: Picture, direction: Direction): Plan {
  const boxes = picture.boxes.map((box): PlanItem => ({ id: box.id, box: box.box, isBox: true, ...boxLeast(box) }));
  const cards = picture.cards.map(
    (card): PlanItem => ({ id: card.id, box: card.box, isBox: false, ...cardSize(card) }),
  );
  const links = picture.wires.map(
    (wire): PlanLink => ({
      id: wire.id,
      source: wire.source,
      target: wire.target,
      label: labelSize(wire, direction === "right"),
    }),
  );
  return { direction, items: [...boxes, ...cards], links };
}

/** Our own layout is good for graphs that are small and whose links do not go through the walls of boxes. */
export const OWN_UP_TO = 40;

export function isSimple(plan: Plan): boolean {
  if (plan.items.length > OWN_UP_TO) return false;
  const around = new Map(plan.items.map((item) => [item.id, item.box]));
  return plan.links.every((link) => around.get(link.source) === around.get(link.target));
}

/** The middle of a route, along its longest part in the direction of the drawing. */
export function middle(points: readonly Point[], direction: Direction): Point {
  let best: Point = points[0] ?? [0, 0];
  let longest = -1;
  for (let at = 1; at < points.length; at += 1) {
    const [ax, ay] = points[at - 1] as Point;
    const [bx, by] = points[at] as Point;
    const length = direction === "right" ? Math.abs(bx - ax) : Math.abs(by - ay);
    // The first of equals: labels stand near the source, where links that meet in a target are still apart.
    if (length > longest + 0.5) {
      longest = length;
      best = [(ax + bx) / 2, (ay + by) / 2];
    }
  }
  return best;
}

/** A path with rounded corners. */
export function pathOf(points: readonly Point[], radius = 7): string {
  const first = points[0];
  if (first === undefined) return "";
  const parts = [`M${round(first[0])} ${round(first[1])}`];
  for (let at = 1; at < points.length; at += 1) {
    const here = points[at] as Point;
    const before = points[at - 1] as Point;
    const after = points[at + 1];
    if (after === undefined) {
      parts.push(`L${round(here[0])} ${round(here[1])}`);
      continue;
    }
    const into = Math.hypot(here[0] - before[0], here[1] - before[1]);
    const out = Math.hypot(after[0] - here[0], after[1] - here[1]);
    const bend = Math.min(radius, into / 2, out / 2);
    if (bend < 0.5) {
      parts.push(`L${round(here[0])} ${round(here[1])}`);
      continue;
    }
    const a: Point = [here[0] + ((before[0] - here[0]) / into) * bend, here[1] + ((before[1] - here[1]) / into) * bend];
    const b: Point = [here[0] + ((after[0] - here[0]) / out) * bend, here[1] + ((after[1] - here[1]) / out) * bend];
    parts.push(`L${round(a[0])} ${round(a[1])}Q${round(here[0])} ${round(here[1])} ${round(b[0])} ${round(b[1])}`);
  }
  return parts.join("");
}

const round = (value: number) => Math.round(value * 10) / 10;
