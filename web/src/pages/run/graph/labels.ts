/** Labels of links to the right are moved to where no other link goes through their words, if there is such a place. */
import type { Label, Layout, Plan, PlanLink, Point } from "./layout";

/** From a link to the middle of the words above or below it, and from there to the middle of the rate. */
export const APART = 9;
export const RATE_BELOW_LINK = 17;
export const RATE_BELOW_WORDS = 12;
/** Half the height of words, with a little air. */
const HALF = 6;
/** Where along a part of the link a label may stand. */
const PLACES = [0.5, 0.25, 0.75];
/** Of more links nobody reads every label. */
const MOST = 300;

type Part = readonly [Point, Point];

export function legible(layout: Layout, plan: Plan): Layout {
  const worded = plan.links.filter((link) => link.label.width > 0 && layout.routes[link.id] !== undefined);
  if (plan.direction !== "right" || plan.links.length > MOST || worded.length === 0) return layout;
  const parts = new Map(Object.entries(layout.routes).map(([id, { points }]) => [id, partsOf(points)]));
  const routes = { ...layout.routes };
  for (const link of worded) {
    const route = routes[link.id];
    if (route === undefined) continue;
    const others = [...parts].flatMap(([id, its]) => (id === link.id ? [] : its));
    const label = best(link, route.label, parts.get(link.id) ?? [], others);
    if (label !== route.label) routes[link.id] = { ...route, label };
  }
  return { ...layout, routes };
}

/** The place that it has, unless another one is crossed by less. */
function best(link: PlanLink, now: Label, own: readonly Part[], others: readonly Part[]): Label {
  let found = now;
  let least = crossed(link, now, others);
  if (least === 0) return now;
  const level = own.filter(([a, b]) => Math.abs(a[1] - b[1]) < 0.5 && Math.abs(a[0] - b[0]) >= link.label.width * 0.6);
  for (const isBelow of [false, true]) {
    for (const [a, b] of level) {
      for (const share of PLACES) {
        const y = a[1] + (isBelow ? APART : -APART);
        const label: Label = { x: a[0] + (b[0] - a[0]) * share, y, anchor: "middle", ...(isBelow && { isBelow }) };
        const crossings = crossed(link, label, others);
        if (crossings < least) [found, least] = [label, crossings];
        if (least === 0) return found;
      }
    }
  }
  return found;
}

/** The words count twice: they are what is read. */
function crossed(link: PlanLink, label: Label, others: readonly Part[]): number {
  const rate = label.y + (label.isBelow === true ? RATE_BELOW_WORDS : RATE_BELOW_LINK);
  const through = (y: number) =>
    others.filter(
      ([a, b]) =>
        Math.max(a[0], b[0]) > label.x - link.label.width / 2 &&
        Math.min(a[0], b[0]) < label.x + link.label.width / 2 &&
        Math.max(a[1], b[1]) > y - HALF &&
        Math.min(a[1], b[1]) < y + HALF,
    ).length;
  return 2 * through(label.y) + through(rate);
}

function partsOf(points: readonly Point[]): Part[] {
  return points.slice(1).map((point, at) => [points[at] as Point, point] as const);
}
