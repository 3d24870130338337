/** Graphs that are too large or too deep for our own layout are laid out by ELK, which is loaded when the first of them is drawn. */
import { type ElkExtendedEdge, type ElkNode, layout } from "@/graph/elk";
import { type Label, type Layout, middle, type Plan, type PlanItem, type Point, type Rect, type Route } from "./layout";
import { BOX_HEAD, BOX_PAD } from "./measure";

const PATIENCE_MS = 30_000;
const LARGE = 80;
/** Then labels get no room of their own: nobody reads all of them. */
const HUGE = 400;

export async function laidOutByElk(plan: Plan): Promise<Layout> {
  let timer: number | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = window.setTimeout(() => reject(new Error("the layout takes too long")), PATIENCE_MS);
  });
  try {
    return layoutOf(plan, await Promise.race([layout(graphOf(plan)), late]));
  } finally {
    window.clearTimeout(timer);
  }
}

export function graphOf(plan: Plan): ElkNode {
  const isRight = plan.direction === "right";
  const isHuge = plan.items.length > HUGE;
  const under = new Map<string | null, PlanItem[]>();
  for (const item of plan.items) under.set(item.box, [...(under.get(item.box) ?? []), item]);
  const nodeOf = (item: PlanItem): ElkNode =>
    item.isBox
      ? {
          id: item.id,
          layoutOptions: {
            "elk.padding": `[top=${BOX_HEAD + BOX_PAD},left=${BOX_PAD},bottom=${BOX_PAD},right=${BOX_PAD}]`,
          },
          children: (under.get(item.id) ?? []).map(nodeOf),
        }
      : { id: item.id, width: item.width, height: item.height };
  return {
    id: "root",
    layoutOptions: {
      "elk.algorithm": "layered",
      "elk.direction": isRight ? "RIGHT" : "DOWN",
      "elk.hierarchyHandling": "INCLUDE_CHILDREN",
      "elk.edgeRouting": "ORTHOGONAL",
      "elk.padding": "[top=0,left=0,bottom=0,right=0]",
      "elk.spacing.nodeNode": "20",
      "elk.spacing.edgeNode": "14",
      "elk.spacing.edgeEdge": "10",
      "elk.spacing.edgeLabel": isRight ? "2" : "5",
      "elk.layered.edgeLabels.sideSelection": "ALWAYS_UP",
      "elk.layered.spacing.nodeNodeBetweenLayers": isRight ? "22" : "12",
      "elk.layered.spacing.edgeNodeBetweenLayers": isRight ? "12" : "10",
      "elk.layered.spacing.edgeEdgeBetweenLayers": "9",
      "elk.layered.considerModelOrder.strategy": "NODES_AND_EDGES",
      // The prettier one takes four times as long.
      "elk.layered.nodePlacement.strategy": plan.items.length > LARGE ? "BRANDES_KOEPF" : "NETWORK_SIMPLEX",
      ...(isHuge && { "elk.layered.thoroughness": "2" }),
      "elk.layered.nodePlacement.favorStraightEdges": "true",
      "elk.separateConnectedComponents": "true",
      "elk.spacing.componentComponent": "32",
      "elk.aspectRatio": "1.4",
      "elk.json.edgeCoords": "ROOT",
      "elk.json.shapeCoords": "ROOT",
    },
    children: (under.get(null) ?? []).map(nodeOf),
    edges: plan.links.map(
      (link): ElkExtendedEdge => ({
        id: link.id,
        sources: [link.source],
        targets: [link.target],
        ...(link.label.width > 0 &&
          !isHuge && {
            labels: [
              {
                id: `${link.id}\nlabel`,
                text: "l",
                ...link.label,
                layoutOptions: { "elk.edgeLabels.placement": "CENTER" },
              },
            ],
          }),
      }),
    ),
  };
}

export function layoutOf(plan: Plan, drawn: ElkNode): Layout {
  const isBox = new Set(plan.items.flatMap((item) => (item.isBox ? [item.id] : [])));
  const cards: Record<string, Rect> = {};
  const boxes: Record<string, Rect> = {};
  const visit = (node: ElkNode) => {
    for (const child of node.children ?? []) {
      (isBox.has(child.id) ? boxes : cards)[child.id] = {
        x: child.x ?? 0,
        y: child.y ?? 0,
        width: child.width ?? 0,
        height: child.height ?? 0,
      };
      visit(child);
    }
  };
  visit(drawn);
  const routes: Record<string, Route> = {};
  const isRight = plan.direction === "right";
  for (const edge of drawn.edges ?? []) {
    const points = (edge.sections ?? []).flatMap((section): Point[] =>
      [section.startPoint, ...(section.bendPoints ?? []), section.endPoint].map(({ x, y }) => [x, y] as const),
    );
    const box = edge.labels?.[0];
    const centre: Point | null =
      box?.x === undefined || box.y === undefined
        ? null
        : [box.x + (box.width ?? 0) / 2, box.y + (box.height ?? 0) / 2];
    const wall = boxes[edge.sources[0] ?? ""];
    const first = points[0];
    // From the wall of a box to what is in it: below its title.
    if (!isRight && wall !== undefined && first !== undefined && Math.abs(first[1] - wall.y) < 1)
      points[0] = [first[0], first[1] + BOX_HEAD];
    routes[edge.id] = { points, label: labelled(points, centre ?? middle(points, plan.direction), isRight) };
  }
  return { width: drawn.width ?? 0, height: drawn.height ?? 0, cards, boxes, routes };
}

/** Next to the part of the link that passes by where ELK has made room for the label. */
function labelled(points: readonly Point[], [cx, cy]: Point, isRight: boolean): Label {
  if (isRight) return { x: cx, y: nearestOf(points, cx, cy, 0) - 9, anchor: "middle" };
  const x = nearestOf(points, cy, cx, 1);
  return cx < x - 1 ? { x: x - 6, y: cy, anchor: "end" } : { x: x + 6, y: cy, anchor: "start" };
}

/** Where a link that runs along an axis passes a place on it, as near to a value across as it does. */
function nearestOf(points: readonly Point[], along: number, across: number, axis: 0 | 1): number {
  let best = across;
  let least = Number.POSITIVE_INFINITY;
  points.forEach((point, at) => {
    const before = points[at - 1];
    if (before === undefined || Math.abs((before[1 - axis] as number) - (point[1 - axis] as number)) > 0.5) return;
    const [from, to] = [Math.min(before[axis], point[axis]), Math.max(before[axis], point[axis])];
    if (along < from - 1 || along > to + 1) return;
    const value = point[1 - axis] as number;
    if (Math.abs(value - across) < least) {
      least = Math.abs(value - across);
      best = value;
    }
  });
  return best;
}
