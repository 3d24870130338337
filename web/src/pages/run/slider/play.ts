/** How a run is played again: so many events a second, or at the pace at which it ran, with long pauses cut short. */
import type { Known } from "./scale";

export interface Pace {
  id: string;
  label: string;
  /** Events a second; of the whole run, by its length; or a factor of the recorded pace. */
  kind: "rate" | "whole" | "recorded";
  value: number;
}

export const PACES: readonly Pace[] = [
  { id: "whole-15", label: "Play in 15 s", kind: "whole", value: 15 },
  { id: "whole-60", label: "Play in 1 min", kind: "whole", value: 60 },
  { id: "rate-2", label: "2 events/s", kind: "rate", value: 2 },
  { id: "rate-10", label: "10 events/s", kind: "rate", value: 10 },
  { id: "recorded-1", label: "Real time", kind: "recorded", value: 1 },
  { id: "recorded-10", label: "10× real time", kind: "recorded", value: 10 },
];

/** A pause of hours is not waited for. */
export const LONGEST_PAUSE_S = 2;

export function paceOf(id: string | null): Pace {
  return PACES.find((pace) => pace.id === id) ?? (PACES[0] as Pace);
}

/** The event to be shown after so many seconds of playing, for a pace that needs no times. */
export function playedTo(pace: Pace, from: number, last: number, seconds: number): number {
  const rate = pace.kind === "whole" ? Math.max(1, last / pace.value) : pace.value;
  return Math.min(last, from + Math.floor(rate * seconds));
}

/** Playing at the recorded pace: when each event is shown, in seconds after the first of them. */
export function showTimes(events: readonly Known[], factor: number): number[] {
  let at = 0;
  return events.map((event, index) => {
    const before = events[index - 1];
    if (before !== undefined) at += Math.min(LONGEST_PAUSE_S, Math.max(0, event.ts - before.ts) / factor);
    return at;
  });
}

/** How many of ascending times have come by now. */
export function come(times: readonly number[], now: number): number {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((times[middle] as number) <= now) low = middle + 1;
    else high = middle;
  }
  return low;
}
