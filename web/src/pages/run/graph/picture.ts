/**
 * What is drawn of a graph: frames that are closed are one card, frames that are open are boxes around what is in them.
 *
 * Law: every node and every link of the graph is represented by exactly one thing that is drawn, or lies inside of one that is
 * closed. Ids of what is drawn are `n:` + a node or `f:` + a frame that no node opens (a sub-job).
 */
import type { Graph, GraphEdge, GraphNode } from "../context";

type Frame = Graph["frames"][number];

export interface Card {
  id: string;
  title: string;
  /** Below the title: the type of a component, the tools of a step, or how much a closed frame holds. */
  type: string;
  node: GraphNode | null;
  frame: Frame | null;
  /** The box that it is drawn in. */
  box: string | null;
  /** How many nodes are inside, if it can be opened. */
  inside: number;
  /** It runs many times, and says how far it is. */
  isLoop: boolean;
}

export interface Box {
  id: string;
  title: string;
  frame: Frame;
  /** The node that opens it; null for a sub-job. */
  opener: GraphNode | null;
  box: string | null;
}

export interface Wire {
  id: string;
  source: string;
  target: string;
  /** The links it stands for: more than one when some of them end in the same closed frames. */
  edges: readonly GraphEdge[];
  kind: GraphEdge["kind"];
  on: string;
  label: string;
  isFailure: boolean;
}

export interface Picture {
  cards: readonly Card[];
  boxes: readonly Box[];
  wires: readonly Wire[];
}

export const nodeId = (node: string) => `n:${node}`;
export const frameId = (frame: Pick<Frame, "id" | "opener">) =>
  frame.opener === null ? `f:${frame.id}` : `n:${frame.opener}`;

/** So many cards may be there before sub-jobs are closed from the beginning. */
export const OPEN_UP_TO = 40;

/** The frames that are open before anybody has opened or closed one: sub-jobs of a job that is small enough. */
export function openAtFirst(graph: Graph): ReadonlySet<string> {
  const subjobs = graph.frames.filter((frame) => frame.kind === "subjob" && frame.parent === null);
  const open = new Set(subjobs.map((frame) => frame.id));
  return pictured(graph, open).cards.length <= OPEN_UP_TO ? open : new Set();
}

/** The frames around a node, from the outermost to the innermost. */
export function framesAround(graph: Graph, node: string): string[] {
  const frames = new Map(graph.frames.map((frame) => [frame.id, frame]));
  const found: string[] = [];
  let at = graph.nodes.find((one) => one.id === node)?.frame ?? null;
  while (at !== null && found.length < frames.size) {
    found.unshift(at);
    at = frames.get(at)?.parent ?? null;
  }
  return found;
}

/** A job of one sub-job needs no box around all of it. */
export function withoutOnlySubjob(graph: Graph): Graph {
  const [only, ...others] = graph.frames.filter((frame) => frame.kind === "subjob" && frame.parent === null);
  if (only === undefined || others.length > 0 || graph.nodes.some((node) => node.frame === null)) return graph;
  const lifted = (frame: string | null) => (frame === only.id ? null : frame);
  return {
    ...graph,
    nodes: graph.nodes.map((node) => ({ ...node, frame: lifted(node.frame) })),
    frames: graph.frames.filter((frame) => frame !== only).map((frame) => ({ ...frame, parent: lifted(frame.parent) })),
  };
}

export function pictured(graph: Graph, open: ReadonlySet<string>): Picture {
  const frames = new Map(graph.frames.map((frame) => [frame.id, frame]));
  const nodes = new Map(graph.nodes.map((node) => [node.id, node]));
  const openers = new Map(
    graph.frames.flatMap((frame) => (frame.opener === null ? [] : [[frame.opener, frame] as const])),
  );
  // A frame that holds nothing would be an empty box.
  const insides = counts(graph, frames);
  const isOpen = (frame: Frame) => open.has(frame.id) && (insides.get(frame.id) ?? 0) > 0;

  /** The outermost closed frame among those around something; null when all are open. */
  const closedAround = (start: string | null): Frame | null => {
    let closed: Frame | null = null;
    const seen = new Set<string>();
    for (let at = start; at !== null && !seen.has(at); ) {
      seen.add(at);
      const frame = frames.get(at);
      if (frame === undefined) break;
      if (!isOpen(frame)) closed = frame;
      at = frame.parent ?? parentOfOpener(frame, nodes);
    }
    return closed;
  };
  const boxOf = (frame: string | null): string | null => {
    const found = frame === null ? undefined : frames.get(frame);
    return found === undefined ? null : frameId(found);
  };
  const drawnOf = (node: string): string => {
    const closed = closedAround(nodes.get(node)?.frame ?? null);
    return closed === null ? nodeId(node) : frameId(closed);
  };

  const cards: Card[] = [];
  const boxes: Box[] = [];
  for (const frame of graph.frames) {
    const parent = frame.parent ?? parentOfOpener(frame, nodes);
    if (closedAround(parent) !== null) continue;
    const opener = frame.opener === null ? null : (nodes.get(frame.opener) ?? null);
    if (isOpen(frame)) {
      const title = opener?.title ?? titleOf(frame);
      boxes.push({ id: frameId(frame), title, frame, opener, box: boxOf(parent) });
    } else if (opener === null && (insides.get(frame.id) ?? 0) > 0) {
      const inside = insides.get(frame.id) ?? 0;
      const type = `${inside} component${inside === 1 ? "" : "s"}`;
      cards.push({
        id: frameId(frame),
        title: titleOf(frame),
        type,
        node: null,
        frame,
        box: boxOf(parent),
        inside,
        isLoop: false,
      });
    }
  }
  for (const node of graph.nodes) {
    if (closedAround(node.frame) !== null) continue;
    const frame = openers.get(node.id) ?? null;
    if (frame !== null && isOpen(frame)) continue;
    const inside = frame === null ? 0 : (insides.get(frame.id) ?? 0);
    const isLoop = node.loop !== null || node.kind === "iterator";
    cards.push({
      id: nodeId(node.id),
      title: node.title,
      type: node.type,
      node,
      frame,
      box: boxOf(node.frame),
      inside,
      isLoop,
    });
  }
  return { cards, boxes: outermostFirst(boxes), wires: wired(graph.edges, drawnOf, boxes, cards) };
}

/** The box says by its look that it is a sub-job. */
function titleOf(frame: Frame): string {
  return frame.kind === "subjob" ? frame.title.replace(/^sub-job /, "") : frame.title;
}

function parentOfOpener(frame: Frame, nodes: ReadonlyMap<string, GraphNode>): string | null {
  return frame.opener === null ? null : (nodes.get(frame.opener)?.frame ?? null);
}

/** How many nodes each frame holds, in all of its depth; the call of a joblet is what is in it. */
function counts(graph: Graph, frames: ReadonlyMap<string, Frame>): Map<string, number> {
  const found = new Map<string, number>();
  const nodes = new Map(graph.nodes.map((node) => [node.id, node]));
  for (const node of graph.nodes) {
    if (node.kind === "joblet" && node.opens !== null) continue;
    const seen = new Set<string>();
    for (let at = node.frame; at !== null && !seen.has(at); ) {
      seen.add(at);
      found.set(at, (found.get(at) ?? 0) + 1);
      const frame = frames.get(at);
      at = frame === undefined ? null : (frame.parent ?? parentOfOpener(frame, nodes));
    }
  }
  return found;
}

/** React Flow draws parents before their children only when they come first. */
function outermostFirst(boxes: readonly Box[]): Box[] {
  const byId = new Map(boxes.map((box) => [box.id, box]));
  const depth = (box: Box): number => {
    const around = box.box === null ? undefined : byId.get(box.box);
    return around === undefined || around === box ? 0 : 1 + depth(around);
  };
  return [...boxes].sort((one, other) => depth(one) - depth(other));
}

function wired(
  edges: readonly GraphEdge[],
  drawnOf: (node: string) => string,
  boxes: readonly Box[],
  cards: readonly Card[],
): Wire[] {
  const around = new Map([...boxes, ...cards].map((one) => [one.id, one.box]));
  const found = new Map<string, GraphEdge[]>();
  for (const edge of edges) {
    const source = drawnOf(edge.source);
    const target = drawnOf(edge.target);
    if (!around.has(source) || !around.has(target)) continue;
    const isLoop = edge.source === edge.target && source === target;
    // What goes on within one closed frame is not drawn; from the wall of a box to what is in it is.
    if (!isLoop && source === target) continue;
    const isLifted = source !== nodeId(edge.source) || target !== nodeId(edge.target);
    const key = isLifted
      ? JSON.stringify([source, target, edge.kind, edge.on, edge.is_failure])
      : JSON.stringify([edge.id]);
    const known = found.get(key);
    if (known === undefined) found.set(key, [edge]);
    else known.push(edge);
  }
  return [...found.values()].flatMap((same) => {
    const first = same[0];
    if (first === undefined) return [];
    return [
      {
        id: same.map((edge) => edge.id).join("\n"),
        source: drawnOf(first.source),
        target: drawnOf(first.target),
        edges: same,
        kind: first.kind,
        on: first.on,
        label: labelOf(first, same.length),
        isFailure: first.is_failure,
      },
    ];
  });
}

const LONGEST = 26;

/** A guard in the space that a link has; all of it is said where the link is described. */
export function cut(text: string, longest = LONGEST): string {
  const one = text.replace(/\s+/g, " ").trim();
  return one.length <= longest ? one : `${one.slice(0, longest - 1).trimEnd()}…`;
}

function labelOf(edge: GraphEdge, count: number): string {
  if (edge.kind === "data") return count > 1 || !edge.port || edge.port === "main" ? "" : cut(edge.port, 14);
  return count > 1 ? `${count} × ${cut(edge.label || edge.on, 16)}` : cut(edge.label);
}

/** Whether a picture shows a node by a card or box of its own. */
export function shows(picture: Picture, node: string): boolean {
  const id = nodeId(node);
  return picture.cards.some((card) => card.id === id) || picture.boxes.some((box) => box.id === id);
}

/** What a place in the graph is drawn as: the node itself, or the closed frame around it. */
export function drawnAs(graph: Graph, picture: Picture, node: string): string | null {
  if (shows(picture, node)) return nodeId(node);
  const frames = new Map(graph.frames.map((frame) => [frame.id, frame]));
  for (const id of framesAround(graph, node)) {
    const frame = frames.get(id);
    if (frame !== undefined && picture.cards.some((card) => card.id === frameId(frame))) return frameId(frame);
  }
  return null;
}
