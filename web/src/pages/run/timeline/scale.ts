/** Time along the width of the timeline. Seconds since the epoch, pixels from the left. */
export interface Range {
  since: number;
  until: number;
}

export const lengthOf = (range: Range) => Math.max(1e-9, range.until - range.since);

export function xOf(ts: number, range: Range, width: number): number {
  return ((ts - range.since) / lengthOf(range)) * width;
}

export function tsOf(x: number, range: Range, width: number): number {
  return range.since + (x / Math.max(1, width)) * lengthOf(range);
}

/** Closer or wider around a time that stays where it is; never wider than the whole, nor closer than a millisecond. */
export function zoomed(range: Range, whole: Range, anchor: number, factor: number): Range {
  const length = Math.min(lengthOf(whole), Math.max(0.001, lengthOf(range) * factor));
  const share = (anchor - range.since) / lengthOf(range);
  return within({ since: anchor - share * length, until: anchor + (1 - share) * length }, whole);
}

export function panned(range: Range, whole: Range, seconds: number): Range {
  return within({ since: range.since + seconds, until: range.until + seconds }, whole);
}

/** Moved, not squeezed, into the whole. */
function within(range: Range, whole: Range): Range {
  const length = lengthOf(range);
  if (length >= lengthOf(whole)) return { ...whole };
  const since = Math.min(Math.max(range.since, whole.since), whole.until - length);
  return { since, until: since + length };
}

export function isSame(one: Range, other: Range): boolean {
  const close = lengthOf(one) * 1e-6 + 1e-6;
  return Math.abs(one.since - other.since) < close && Math.abs(one.until - other.until) < close;
}

const STEPS = [
  0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200,
  10800, 21600, 43200, 86400, 172800, 604800,
];

export interface Tick {
  /** Seconds after the start of the run. */
  after: number;
  x: number;
  label: string;
}

/** Round offsets from the start of the run, with room for their labels. */
export function ticks(range: Range, start: number, width: number, apart = 84): Tick[] {
  const least = (lengthOf(range) * apart) / Math.max(1, width);
  const days = 604800 * 2 ** Math.max(0, Math.ceil(Math.log2(least / 604800)));
  const step = STEPS.find((one) => one >= least) ?? days;
  const first = Math.ceil((range.since - start) / step - 1e-9);
  const found: Tick[] = [];
  for (let at = first; found.length < 200; at += 1) {
    const after = at * step;
    const x = xOf(start + after, range, width);
    if (x > width + 0.5) break;
    found.push({ after, x, label: offset(after, step) });
  }
  return found;
}

/** `0`, `250 ms`, `1.5 s`, `2:05`, `3:02:05`, `2 d 3:00`. */
export function offset(seconds: number, step = 1): string {
  if (Math.abs(seconds) < 1e-9) return "0";
  const sign = seconds < 0 ? "−" : "";
  const value = Math.abs(seconds);
  if (value < 1) return `${sign}${Number((value * 1000).toFixed(0))} ms`;
  if (value < 60) return `${sign}${Number(value.toFixed(step < 1 ? 3 : 0))} s`;
  const whole = Math.round(value * (step < 1 ? 1000 : 1)) / (step < 1 ? 1000 : 1);
  const days = Math.floor(whole / 86_400);
  const hours = Math.floor((whole % 86_400) / 3600);
  const minutes = Math.floor((whole % 3600) / 60);
  const rest = whole % 60;
  const two = (part: number) => String(part).padStart(2, "0");
  const tail =
    step < 1 ? rest.toFixed(3).replace(/0+$/, "").replace(/\.$/, "").padStart(2, "0") : two(Math.round(rest));
  if (days > 0) return `${sign}${days} d ${hours}:${two(minutes)}`;
  return hours > 0 ? `${sign}${hours}:${two(minutes)}:${tail}` : `${sign}${minutes}:${tail}`;
}
