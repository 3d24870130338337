/** The bars of a lane as they are drawn: cut to what is visible, never more than the pixels can show. */
import type { components } from "@/api/schema";
import { type State, stateOf } from "@/ui";
import { type Range, xOf } from "./scale";

type Schemas = components["schemas"];
export type Bar = Schemas["BarOut"];
export type Lane = Schemas["LaneOut"];
export type TimelineData = Schemas["TimelineOut"];

export interface Drawn {
  bar: Bar;
  x: number;
  width: number;
  row: 0 | 1 | 2;
}

export const NARROWEST = 3;

/** Waits and leases lie in thinner rows below attempts and runs, so that none hides the other. */
const ROWS: Record<Bar["kind"], Drawn["row"]> = { run: 0, attempt: 0, wait: 1, lease: 2 };

export function drawnBars(bars: readonly Bar[], range: Range, width: number, now: number): Drawn[] {
  const found: Drawn[] = [];
  const ends: Record<string, Drawn> = {};
  for (const bar of bars) {
    const left = xOf(bar.since, range, width);
    const right = xOf(bar.until ?? Math.max(now, bar.since), range, width);
    if (right < 0 || left > width) continue;
    const x = Math.max(-2, left);
    const shown: Drawn = { bar, x, width: Math.max(NARROWEST, Math.min(width + 2, right) - x), row: ROWS[bar.kind] };
    // The server merges for the width that it was asked for; a pane that has become narrower merges again.
    const last = ends[`${shown.row} ${bar.status}`];
    if (
      last !== undefined &&
      shown.width <= NARROWEST &&
      x - last.x < 1 &&
      bar.until !== null &&
      last.bar.until !== null
    ) {
      last.bar = {
        ...last.bar,
        until: Math.max(last.bar.until, bar.until),
        count: last.bar.count + bar.count,
        failed: last.bar.failed + bar.failed,
      };
      continue;
    }
    ends[`${shown.row} ${bar.status}`] = shown;
    found.push(shown);
  }
  return found;
}

/** Of many of which some failed, the colour is that of the others: a stripe says that some failed. */
export function toneOf(bar: Bar): State {
  if (bar.kind === "wait") return "waiting";
  const isMixed = bar.count > 1 && bar.failed > 0 && bar.failed < bar.count;
  return isMixed ? "ok" : stateOf(bar.status);
}

/** What a bar of a worker belongs to: the step `fetch` of `fetch@2[5]`, or the sub-job `<load>`. The label of a lease says how it ended. */
export function nodeOf(bar: Bar): string {
  if (bar.kind !== "lease" && bar.label !== "") return bar.label;
  const scope = bar.scope ?? "";
  return scope.slice(scope.lastIndexOf("/") + 1).replace(/[@[].*$/, "");
}
