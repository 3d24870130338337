import { useNow } from "./now";
import { clock, counted, day, exact, lasting, relative, shortened } from "./wording";

interface TimeProps {
  /** ISO 8601, or milliseconds since the epoch. */
  value: string | number | null | undefined;
  /** `relative`: 3 min ago. `clock`: 13:05:09. `exact`: with milliseconds. `full`: day and clock. `short`: the clock, with the day when it is not today. */
  as?: "relative" | "clock" | "exact" | "full" | "short";
}

/** A time, as the reader's clock has it; exactly, with the zone, on pointing at it. */
export function Time({ value, as = "relative" }: TimeProps) {
  const date = value === null || value === undefined ? null : new Date(value);
  const isOld = date !== null && Date.now() - date.getTime() > 3_600_000;
  // What has just happened is not in the future, although the clock was last looked at before it.
  const now = Math.max(useNow(as === "relative" || as === "short" ? (isOld ? 60_000 : 5_000) : null), Date.now());
  if (date === null || Number.isNaN(date.getTime())) return <span className="quiet">–</span>;
  const text = {
    relative: () => relative(date.getTime(), now),
    clock: () => clock(date),
    exact: () => clock(date, true),
    full: () => `${day(date)} ${clock(date)}`,
    short: () => (day(date) === day(new Date(now)) ? clock(date) : `${day(date).slice(5)} ${clock(date).slice(0, 5)}`),
  }[as]();
  return (
    <time dateTime={date.toISOString()} title={exact(date)} className="ui-time">
      {text}
    </time>
  );
}

interface DurationProps {
  ms?: number | null | undefined;
  /** Without `ms`: how long ago this was, counting on. */
  since?: string | number | null | undefined;
}

export function Duration({ ms, since }: DurationProps) {
  const isOpen = (ms === null || ms === undefined) && since !== null && since !== undefined;
  const now = useNow(isOpen ? 1000 : null);
  const value = isOpen ? Math.max(0, now - new Date(since).getTime()) : ms;
  if (value === null || value === undefined) return <span className="quiet">–</span>;
  return (
    <span className="ui-duration" title={isOpen ? undefined : `${counted(value)} ms`}>
      {lasting(isOpen ? Math.floor(value / 1000) * 1000 : value)}
    </span>
  );
}

/** A number with separators; short ones (`1.2 M`) say all of it on pointing at them. */
export function Num({ value, isShort = false }: { value: number | null | undefined; isShort?: boolean }) {
  if (value === null || value === undefined) return <span className="quiet">–</span>;
  const isCut = isShort && Math.abs(value) >= 10_000;
  return (
    <span className="ui-number" title={isCut ? counted(value) : undefined}>
      {isCut ? shortened(value) : counted(value)}
    </span>
  );
}
