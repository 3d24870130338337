/** What cards and links say, to the eye and to a screen reader. */
import { counted, lasting, plural, type State, shortened, stateOf } from "@/ui";
import { goingFor } from "../clock";
import type { EdgeState, GraphEdge, NodeState } from "../context";
import type { Box, Card, Wire } from "./picture";
import type { FrameState } from "./states";

export const spoken: Record<State, string> = {
  waiting: "waiting",
  running: "running",
  ok: "completed",
  failed: "failed",
  skipped: "skipped",
  idle: "not run",
  cancelled: "cancelled",
  interrupted: "interrupted",
  crashed: "crashed",
  retrying: "retrying",
};

export interface Seen {
  state: State;
  /** In milliseconds; null when it has not begun. */
  ms: number | null;
  /** It runs, and its duration goes on. */
  isGoing: boolean;
}

export function seen(node: NodeState | undefined, frame: FrameState | undefined, now: number): Seen {
  const of = node ?? frame;
  if (of === undefined) return { state: "waiting", ms: null, isGoing: false };
  const state = stateOf(of.status);
  const isGoing = state === "running" || state === "retrying";
  const open = isGoing && of.started_at !== null ? Math.max(0, now - of.started_at) * 1000 : 0;
  if (node !== undefined) {
    const ms = node.ms + open;
    return { state, ms: node.started_at === null && node.ms === 0 ? null : ms, isGoing };
  }
  if (of.started_at === null) return { state, ms: null, isGoing };
  return { state, ms: isGoing ? open : ((of.ended_at ?? now) - of.started_at) * 1000, isGoing };
}

/** `412 of 1,000, 3 failed`. */
export function progress(fan: NonNullable<NodeState["fan"]>): string {
  const done = fan.ok + fan.failed;
  const all = fan.total === null ? `${counted(done)} so far` : `${counted(done)} of ${counted(fan.total)}`;
  return fan.failed > 0 ? `${all}, ${counted(fan.failed)} failed` : all;
}

export function shares(fan: NonNullable<NodeState["fan"]>): { ok: number; failed: number } {
  const total = fan.total ?? fan.ok + fan.failed + Math.max(1, fan.open);
  return total <= 0 ? { ok: 1, failed: 0 } : { ok: fan.ok / total, failed: fan.failed / total };
}

/** `attempt 3 in 4 s`. */
export function retrying(node: NodeState, now: number): string | null {
  if (node.status !== "retrying" || node.retry_at === null) return null;
  const left = Math.ceil(node.retry_at - now);
  return left > 0 ? `attempt ${node.attempt + 1} in ${goingFor(left * 1000)}` : `attempt ${node.attempt + 1} now`;
}

const sum = (rows: Readonly<Record<string, number>>) => Object.values(rows).reduce((all, one) => all + one, 0);

/** The rows that came out of a component, or went into one that gives none out. */
export function rowsOf(node: NodeState): number | null {
  for (const rows of [node.rows_out, node.rows_so_far, node.rows_in])
    if (Object.keys(rows).length > 0) return sum(rows);
  return null;
}

/** What the second line of a card says beside its type: runs, attempts, rows. */
export function detail(node: NodeState): string | null {
  if (node.fan !== null) return null;
  if (node.runs > 1) {
    const failed = node.ended.failed ?? 0;
    return failed > 0 ? `${counted(node.runs)} runs, ${counted(failed)} failed` : `${counted(node.runs)} runs`;
  }
  if (node.attempt > 1) return `attempt ${node.attempt}`;
  return null;
}

/** The accessible name: `load, failed, attempt 3, 12 s, write_sql`. */
export function cardName(card: Card, node: NodeState | undefined, frame: FrameState | undefined, now: number): string {
  const { state, ms } = seen(node, frame, now);
  const parts = [card.title, spoken[state]];
  if (node !== undefined) {
    const retry = retrying(node, now);
    if (retry !== null) parts.push(retry);
    else if (node.attempt > 1) parts.push(plural(node.attempt, "attempt"));
    if (node.fan !== null) parts.push(progress(node.fan));
    else if (node.runs > 1) parts.push(plural(node.runs, "run"));
    const rows = rowsOf(node);
    if (rows !== null) parts.push(plural(rows, "row"));
  }
  if (ms !== null) parts.push(lasting(ms));
  parts.push(card.node === null ? `sub-job of ${card.type}` : card.type);
  if (card.inside > 0) parts.push("closed, Enter opens it");
  if (node?.error) parts.push(node.error);
  else if (node?.reason) parts.push(node.reason);
  return parts.join(", ");
}

export function boxName(box: Box, node: NodeState | undefined, frame: FrameState | undefined, now: number): string {
  const { state, ms } = seen(node, frame, now);
  const parts = [box.title, spoken[state]];
  if (node?.fan) parts.push(progress(node.fan));
  if (ms !== null) parts.push(lasting(ms));
  parts.push(box.opener === null ? "sub-job" : box.opener.type, "open, Enter closes it");
  return parts.join(", ");
}

// ---- links

export interface WireSeen {
  state: EdgeState["state"];
  rows: number | null;
  rate: number | null;
  fired: number;
}

/** The state of all links that are drawn as one. */
export function wireSeen(states: readonly (EdgeState | undefined)[]): WireSeen {
  const known = states.filter((one): one is EdgeState => one !== undefined);
  const isFired = known.some((one) => one.state === "fired");
  const isDead = known.length > 0 && known.length === states.length && known.every((one) => one.state === "dead");
  const add = (of: "rows" | "rate") =>
    known.reduce<number | null>((all, one) => (one[of] === null ? all : (all ?? 0) + (one[of] ?? 0)), null);
  return {
    state: isFired ? "fired" : isDead ? "dead" : "unsettled",
    rows: add("rows"),
    rate: add("rate"),
    fired: known.reduce((all, one) => all + one.fired, 0),
  };
}

/** Exact, as long as there is room for it. */
function exactRows(rows: number): string {
  return `${rows < 10_000_000 ? counted(rows) : shortened(rows)} ${rows === 1 ? "row" : "rows"}`;
}

export function rateText(rate: number): string {
  return `${shortened(rate < 10 ? Math.round(rate * 10) / 10 : Math.round(rate))} rows/s`;
}

export function wireLabel(wire: Wire, { rows, fired, state }: WireSeen): string {
  if (wire.kind === "data") {
    // Before anything went along it, there is no count: 0 rows are something that happened.
    if (rows === null || (rows === 0 && state !== "fired")) return wire.label;
    return wire.label === "" ? exactRows(rows) : `${wire.label} · ${exactRows(rows)}`;
  }
  return fired > 1 && wire.label !== ""
    ? `${wire.label} × ${counted(fired)}`
    : fired > 1
      ? `× ${counted(fired)}`
      : wire.label;
}

const STATE_WORDS = { fired: "fired", dead: "will not fire", unsettled: "not settled yet" };

/** All that there is to say about a link, guards in full. */
export function wireName(wire: Wire, state: WireSeen): string {
  const one = (edge: GraphEdge) =>
    `${edge.source} to ${edge.target}${edge.kind === "data" ? `, port ${edge.port ?? "main"}` : edge.label === "" ? "" : `, ${edge.on === "arc" ? "when" : "on"} ${edge.label}`}`;
  const first = wire.edges[0];
  const what =
    wire.edges.length === 1 && first !== undefined
      ? one(first)
      : `${plural(wire.edges.length, "link")} from ${first?.source ?? ""}`;
  const kind = wire.kind === "data" ? "Data link" : wire.kind === "arc" ? "Arc" : "Control link";
  const isCounted = state.rows !== null && (state.rows > 0 || state.state === "fired");
  const rows = isCounted ? `, ${plural(state.rows ?? 0, "row")}` : "";
  const rate = state.rate === null ? "" : `, ${rateText(state.rate)}`;
  const times = state.fired > 1 ? `, ${counted(state.fired)} times` : "";
  return `${kind} ${what}, ${STATE_WORDS[state.state]}${times}${rows}${rate}`;
}
