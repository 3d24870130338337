/** Cron expressions in words. What the server says about an expression counts; this only helps to read one. */

const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December",
];

const NAMED: Record<string, string> = {
  "@yearly": "0 0 1 1 *",
  "@annually": "0 0 1 1 *",
  "@monthly": "0 0 1 * *",
  "@weekly": "0 0 * * 0",
  "@daily": "0 0 * * *",
  "@midnight": "0 0 * * *",
  "@hourly": "0 * * * *",
};

/** `at 06:00 on Monday to Friday`; null for what it cannot say. */
export function inWords(cron: string): string | null {
  const parts = (NAMED[cron.trim().toLowerCase()] ?? cron).trim().split(/\s+/);
  if (parts.length !== 5) return null;
  const [minute, hour, day, month, weekday] = parts as [string, string, string, string, string];
  const time = timeWords(minute, hour);
  const days = dayWords(day, weekday);
  const months = month === "*" ? "" : listed(month, (name) => named(name, MONTHS, 1));
  if (time === null || days === null || months === null) return null;
  return [time, days, months === "" ? "" : `in ${months}`].filter(Boolean).join(" ");
}

const two = (value: number) => String(value).padStart(2, "0");

function timeWords(minute: string, hour: string): string | null {
  const everyMinutes = stepOf(minute);
  const everyHours = stepOf(hour);
  if (minute === "*" && hour === "*") return "every minute";
  if (everyMinutes !== null && hour === "*") return `every ${everyMinutes} minutes`;
  const minutes = numbers(minute, 0, 59);
  if (hour === "*" || everyHours !== null) {
    const every = everyHours === null ? "every hour" : `every ${everyHours} hours`;
    if (minutes === null) return null;
    if (minutes.length === 1 && minutes[0] === 0)
      return everyHours === null ? "every hour, on the hour" : `${every}, on the hour`;
    return `${every} at ${joined(minutes.map((one) => `:${two(one)}`))}`;
  }
  const range = /^(\d{1,2})-(\d{1,2})$/.exec(hour);
  if (range !== null && (minute === "*" || everyMinutes !== null)) {
    const every = minute === "*" ? "every minute" : `every ${everyMinutes} minutes`;
    return `${every} from ${two(Number(range[1]))}:00 to ${two(Number(range[2]))}:59`;
  }
  const hours = numbers(hour, 0, 23);
  if (hours === null || minutes === null || hours.length * minutes.length > 6) return null;
  return `at ${joined(hours.flatMap((h) => minutes.map((m) => `${two(h)}:${two(m)}`)))}`;
}

function dayWords(day: string, weekday: string): string | null {
  if (day === "*" && weekday === "*") return "";
  const weekdays = weekday === "*" || weekday === "?" ? "" : listed(weekday, (name) => named(name, DAYS, 0));
  const isLast = day.toUpperCase() === "L";
  const every = stepOf(day);
  const days =
    day === "*" || day === "?"
      ? ""
      : isLast
        ? "the last day of the month"
        : every !== null
          ? `every ${ordinal(every)} day of the month`
          : listed(day, (name) => (/^\d{1,2}$/.test(name) ? `the ${ordinal(Number(name))}` : null));
  if (weekdays === null || days === null) return null;
  if (days === "") return weekday.includes("-") ? `from ${weekdays}` : `on ${weekdays}`;
  return weekdays === "" ? `on ${days}` : `on ${days} or on ${weekdays}`;
}

function stepOf(field: string): number | null {
  const found = /^(?:\*|0)\/(\d{1,2})$/.exec(field);
  return found === null || Number(found[1]) < 2 ? null : Number(found[1]);
}

/** The numbers of a list with ranges; null if there is something else in it. */
function numbers(field: string, least: number, most: number): number[] | null {
  const found: number[] = [];
  for (const part of field.split(",")) {
    const range = /^(\d{1,2})(?:-(\d{1,2}))?$/.exec(part);
    if (range === null) return null;
    const from = Number(range[1]);
    const to = Number(range[2] ?? range[1]);
    if (from < least || to > most || from > to) return null;
    for (let one = from; one <= to; one += 1) found.push(one);
  }
  return found;
}

/** A list with ranges, each part in words. */
function listed(field: string, word: (name: string) => string | null): string | null {
  const words: string[] = [];
  for (const part of field.split(",")) {
    const [from = "", to] = part.split("-");
    const first = word(from);
    const last = to === undefined ? undefined : word(to);
    if (first === null || last === null) return null;
    words.push(last === undefined ? first : `${first} to ${last}`);
  }
  return joined(words);
}

function named(name: string, all: readonly string[], first: number): string | null {
  if (/^\d{1,2}$/.test(name)) {
    // Sunday is 0 and 7.
    const at = Number(name) - first;
    return all[all.length === 7 && at === 7 ? 0 : at] ?? null;
  }
  return all.find((one) => name.length >= 3 && one.toLowerCase().startsWith(name.toLowerCase())) ?? null;
}

function joined(words: readonly string[]): string {
  const last = words.at(-1) ?? "";
  return words.length < 2 ? last : `${words.slice(0, -1).join(", ")} and ${last}`;
}

function ordinal(value: number): string {
  const ten = value % 100;
  const tail = ten > 10 && ten < 14 ? "th" : (["th", "st", "nd", "rd"][value % 10] ?? "th");
  return `${value}${tail}`;
}

/** A time with an offset as the clock of its zone shows it: `Mon 2026-11-23 06:00 +01:00`. */
export function zoned(iso: string): { day: string; clock: string; offset: string } {
  const found = /^(\d{4})-(\d{2})-(\d{2})T(\d{2}:\d{2})(?::\d{2})?(?:\.\d+)?(Z|[+-]\d{2}:?\d{2})?/.exec(iso);
  if (found === null) return { day: iso, clock: "", offset: "" };
  const [, year, month, date, clock = "", offset = ""] = found;
  const name = DAYS[new Date(`${year}-${month}-${date}T12:00:00Z`).getUTCDay()] ?? "";
  return { day: `${name.slice(0, 3)} ${year}-${month}-${date}`, clock, offset: offset === "Z" ? "+00:00" : offset };
}

/** The same moment as the clock of another zone shows it. */
export function inZone(iso: string, zone: string): string {
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return iso;
  try {
    const format = new Intl.DateTimeFormat("en-CA", {
      timeZone: zone,
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
      hourCycle: "h23",
      timeZoneName: "longOffset",
    });
    const part = Object.fromEntries(format.formatToParts(date).map(({ type, value }) => [type, value]));
    const offset = (part.timeZoneName ?? "").replace("GMT", "") || "+00:00";
    return `${part.year}-${part.month}-${part.day}T${part.hour}:${part.minute}:${part.second}${offset}`;
  } catch {
    return iso;
  }
}
