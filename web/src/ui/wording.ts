/** Times, durations and numbers as people read them. */

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** `1,234,567`. */
export function counted(value: number): string {
  return Number.isInteger(value) ? whole.format(value) : value.toLocaleString("en", { maximumFractionDigits: 3 });
}

/** `1.2 M`, for where there is no room. */
export function shortened(value: number): string {
  const units = ["", " k", " M", " G", " T"];
  let at = 0;
  let left = Math.abs(value);
  while (left >= 999.5 && at < units.length - 1) {
    left /= 1000;
    at += 1;
  }
  const text = at === 0 || left >= 100 ? left.toFixed(0) : left.toFixed(1);
  return `${value < 0 ? "−" : ""}${text}${units[at]}`;
}

/** `3 runs`, `1 run`. */
export function plural(count: number, word: string, more = `${word}s`): string {
  return `${counted(count)} ${count === 1 ? word : more}`;
}

/** `340 B`, `1.2 MB`. */
export function bytes(value: number): string {
  return value < 1000
    ? `${value} B`
    : `${shortened(value)
        .replace(" k", " kB")
        .replace(/ ([MGT])/, " $1B")}`;
}

/** As the command line says it: `3 ms`, `0.4 s`, `12 s`, `3 min 4 s`, `2 h 10 min`, `4 d 3 h`. */
export function lasting(ms: number): string {
  if (ms < 0) return lasting(0);
  if (ms < 100) return `${Math.round(ms)} ms`;
  if (ms < 9_950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const pair = (more: number, unit: string, rest: number, part: string) =>
    rest === 0 ? `${more} ${unit}` : `${more} ${unit} ${rest} ${part}`;
  if (seconds < 3600) return pair(Math.floor(seconds / 60), "min", seconds % 60, "s");
  const minutes = Math.round(seconds / 60);
  if (minutes < 1440) return pair(Math.floor(minutes / 60), "h", minutes % 60, "min");
  const hours = Math.round(minutes / 60);
  return pair(Math.floor(hours / 24), "d", hours % 24, "h");
}

/** `just now`, `3 min ago`, `in 2 h`. */
export function relative(at: number, now: number): string {
  const away = Math.abs(now - at);
  if (away < 10_000) return at > now + 1000 ? "in a moment" : "just now";
  const seconds = Math.floor(away / 1000);
  const steps: [number, string][] = [
    [60, "s"],
    [60, "min"],
    [24, "h"],
    [365, "d"],
  ];
  let left = seconds;
  let unit = "y";
  for (const [most, name] of steps) {
    unit = name;
    if (left < most) break;
    left = Math.floor(left / most);
    unit = "y";
  }
  return at > now ? `in ${left} ${unit}` : `${left} ${unit} ago`;
}

const two = (value: number) => String(value).padStart(2, "0");

function zone(date: Date): string {
  const minutes = -date.getTimezoneOffset();
  const away = Math.abs(minutes);
  return `${minutes < 0 ? "-" : "+"}${two(Math.floor(away / 60))}:${two(away % 60)}`;
}

export function day(date: Date): string {
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

export function clock(date: Date, withMilliseconds = false): string {
  const text = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  return withMilliseconds ? `${text}.${String(date.getMilliseconds()).padStart(3, "0")}` : text;
}

/** Exactly, in local time with its zone: `2026-11-18T13:05:09.120+01:00`. */
export function exact(date: Date): string {
  return `${day(date)}T${clock(date, true)}${zone(date)}`;
}

/** The end of a path, which tells files apart; all of it is said on pointing at it. */
export function pathEnd(path: string): string {
  const parts = path.split("/");
  return parts.length <= 3 ? path : `…/${parts.slice(-2).join("/")}`;
}
