/** Where events are on the slider. Its positions are the numbers of events, 1 to the last: each has the same share of its length. */
import type { Marks } from "../context";

export type Mark = Marks["marks"][number];

export const clamp = (value: number, least: number, most: number) =>
  Math.min(Math.max(value, least), Math.max(least, most));

/** The share of the length, from 0 to 1, at which an event stands. */
export function shareOf(seq: number, last: number): number {
  return last <= 1 ? 1 : clamp((seq - 1) / (last - 1), 0, 1);
}

export function seqAt(share: number, last: number): number {
  return last <= 1 ? last : clamp(Math.round(1 + share * (last - 1)), 1, last);
}

export interface Keys {
  key: string;
  shiftKey: boolean;
}

/** Where a key leads to from an event; null when it is not a key of the slider. */
export function keyed({ key, shiftKey }: Keys, seq: number, last: number): number | null {
  const step = shiftKey ? 10 : 1;
  const page = Math.max(100, Math.round(last / 100));
  const to: Record<string, number> = {
    ArrowLeft: seq - step,
    ArrowDown: seq - step,
    ArrowRight: seq + step,
    ArrowUp: seq + step,
    PageDown: seq - page,
    PageUp: seq + page,
    Home: 1,
    End: last,
  };
  const found = to[key];
  return found === undefined ? null : clamp(found, 1, last);
}

export interface Known {
  seq: number;
  ts: number;
}

/**
 * About when an event was, from those whose time is known. The slider says it while it is dragged; the exact time comes with the
 * state of that moment.
 */
export function timeNear(seq: number, known: readonly Known[]): { ts: number; isExact: boolean } | null {
  let low: Known | null = null;
  let high: Known | null = null;
  for (const one of known) {
    if (one.seq === seq) return { ts: one.ts, isExact: true };
    if (one.seq < seq && (low === null || one.seq > low.seq)) low = one;
    if (one.seq > seq && (high === null || one.seq < high.seq)) high = one;
  }
  if (low === null || high === null) {
    const only = low ?? high;
    return only === null ? null : { ts: only.ts, isExact: false };
  }
  const share = (seq - low.seq) / (high.seq - low.seq);
  return { ts: low.ts + share * (high.ts - low.ts), isExact: false };
}

/** Marks that would lie on each other, as one. */
export interface Cluster {
  share: number;
  /** The most telling of them: it gives the sign, and is where a click leads to. */
  mark: Mark;
  marks: readonly Mark[];
}

const RANK: Record<Mark["kind"], number> = {
  failure: 7,
  interrupted: 6,
  lost: 5,
  cancel: 4,
  resume: 3,
  end: 2,
  start: 1,
  retry: 0,
};

export function clustered(marks: readonly Mark[], last: number, width: number, apart = 7): Cluster[] {
  const found: Cluster[] = [];
  let end = Number.NEGATIVE_INFINITY;
  for (const mark of [...marks].sort((one, other) => one.seq - other.seq)) {
    const at = shareOf(mark.seq, last) * width;
    const previous = found.at(-1);
    if (previous !== undefined && at - end < apart) {
      const isMore = RANK[mark.kind] > RANK[previous.mark.kind];
      found[found.length - 1] = {
        share: isMore ? shareOf(mark.seq, last) : previous.share,
        mark: isMore ? mark : previous.mark,
        marks: [...previous.marks, mark],
      };
      // From where the group is drawn, so that a long row of marks does not become one.
      end = (found[found.length - 1] as Cluster).share * width;
    } else {
      found.push({ share: shareOf(mark.seq, last), mark, marks: [mark] });
      end = at;
    }
  }
  return found;
}

/** The next mark after an event, or the last before it. A run has hundreds of retries: they are no stops. */
export function neighbour(marks: readonly Mark[], seq: number, way: "previous" | "next"): Mark | null {
  const stops = marks.filter((mark) => mark.kind !== "retry" && (way === "next" ? mark.seq > seq : mark.seq < seq));
  return stops.reduce<Mark | null>((best, mark) => {
    if (best === null) return mark;
    return (way === "next" ? mark.seq < best.seq : mark.seq > best.seq) ? mark : best;
  }, null);
}
