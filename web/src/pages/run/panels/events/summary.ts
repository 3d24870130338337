/** An event in one line. What is already in its row, its type and its place, is not said again. */
import { lasting } from "@/ui/wording";
import { type Envelope, type Fields, fields } from "./event";

const LONGEST = 400;

export function summaryOf(event: Envelope): string {
  const text = (SAYINGS[event.event_type] ?? other)(fields(event.payload), event);
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > LONGEST ? `${line.slice(0, LONGEST)} …` : line;
}

type Saying = (said: Fields, event: Envelope) => string;

const started: Saying = (said) =>
  joined(
    said.resumed === true && "goes on",
    said.lost && `starts ${said.lost} over`,
    text(said.name),
    given(said.workload),
  );
const ended: Saying = (said) =>
  joined(
    errorOf(said.error),
    counted(said.failed_iterations, "failed iteration"),
    isNumber(said.exit_code) && `exit code ${said.exit_code}`,
  );
const reason: Saying = (said) => text(said.reason);
const subjob: Saying = (said) =>
  joined(text(said.subjob), errorOf(said.error), said.aborts === true && "aborts the job");
const iterationEnded: Saying = (said) =>
  joined(`element ${said.index}`, errorOf(said.error), keys("writes", fields(said.writes).ctx));
const component: Saying = (said) =>
  joined(
    rows(said.rows_in, "in"),
    rows(said.rows_out, "out"),
    errorOf(said.error),
    time(said.ms),
    said.dies === true && "the job dies",
  );
const runEnded: Saying = (said) =>
  joined(errorOf(said.error), brief(said.result), keys("writes", fields(said.writes).ctx));

const SAYINGS: Record<string, Saying> = {
  "playbook.started": started,
  "job.started": started,
  "playbook.resumed": (said) => joined(list("restarted", said.restarted), list("reopened", said.reopened)),
  "playbook.completed": ended,
  "playbook.failed": ended,
  "playbook.cancelled": ended,
  "job.completed": ended,
  "job.failed": ended,
  "job.cancelled": ended,
  "playbook.interrupted": reason,
  "job.interrupted": reason,
  "playbook.cancelling": reason,
  "job.cancelling": reason,
  "token.created": (said) =>
    joined(`to ${said.step}`, said.origin ? `from ${said.origin}` : "the entry", given(said.args)),
  "token.refused": (said) => joined(isNumber(said.rule) && `rule ${said.rule + 1}`, errorOf(said.error)),
  "token.stranded": (said) => joined(list("missing", said.missing), list("present", said.present)),
  "step.scheduled": (said) => joined(isNumber(said.visit) && said.visit > 1 && `visit ${said.visit}`, given(said.args)),
  "step.started": () => "",
  "step.done": runEnded,
  "step.failed": runEnded,
  "loop.done": runEnded,
  "next.selected": (said) =>
    joined(
      Array.isArray(said.steps) && said.steps.length > 0 ? `to ${said.steps.join(", ")}` : "no arc fires",
      said.unhandled === true && "nobody handles the failure",
      errorOf(said.error),
    ),
  "next.enqueued": (said) => joined(`to ${said.step}`, isNumber(said.arc) && `arc ${said.arc + 1}`),
  "task.started": (said) =>
    joined(text(said.kind), isNumber(said.attempt) && said.attempt > 1 && `attempt ${said.attempt}`),
  "task.done": (said) => {
    const outcome = fields(said.outcome);
    return joined(
      said.do !== "continue" && text(said.do),
      said.do === "retry" && isNumber(said.delay) && `after ${lasting(said.delay * 1000)}`,
      errorOf(outcome.error) || brief(outcome.result),
      time(fields(outcome.meta).duration_ms),
      keys("writes", fields(said.writes).ctx),
    );
  },
  "loop.started": (said) =>
    joined(
      isNumber(said.total) ? counted(said.total, "element") : "claims rows",
      text(said.mode),
      isNumber(said.max_in_flight) && `${said.max_in_flight} at once`,
    ),
  "loop.claimed": range,
  "loop.iteration.started": (said) => joined(`element ${said.index}`, said.item !== null && brief(said.item)),
  "loop.iteration.done": iterationEnded,
  "loop.iteration.failed": iterationEnded,
  "loop.fanout.started": (said) =>
    joined(
      isNumber(said.total)
        ? counted(said.total, "element")
        : said.claims === true
          ? "claims rows"
          : "elements are read page by page",
    ),
  "loop.shard.enqueued": (said) =>
    joined(range(said), isNumber(said.attempt) && said.attempt > 0 && `attempt ${said.attempt + 1}`),
  "loop.shard.started": range,
  "loop.shard.reported": (said) => joined(range(said), time(said.ms)),
  "loop.shard.done": (said) =>
    joined(range(said), isNumber(said.failed) && said.failed > 0 && `${said.failed} failed`, time(said.ms)),
  "loop.shard.failed": (said) => joined(errorOf(said.error), said.again === true && "will be tried again"),
  "loop.shard.returned": (said) => joined(range(said), text(said.reason), said.worker ? `by ${said.worker}` : ""),
  "loop.fanin.completed": (said) =>
    joined(
      text(said.status),
      `${said.succeeded} of ${said.total} succeeded`,
      isNumber(said.failed) && said.failed > 0 && `${said.failed} failed`,
    ),
  "subjob.started": subjob,
  "subjob.ok": subjob,
  "subjob.error": subjob,
  "subjob.skipped": subjob,
  "checkpoint.saved": (said) => text(said.subjob),
  "component.started": (said) => joined(text(said.type), rows(said.rows_in, "in")),
  "component.ok": component,
  "component.error": component,
  "component.skipped": (said) => text(said.cause),
  "edge.fired": (said) => `${said.from} (${said.on}) ${said.to}`,
  "global.set": (said) => (said.deleted === true ? `${said.key} is deleted` : `${said.key} = ${brief(said.new)}`),
  "iterator.started": (said) =>
    joined(counted(said.total, "element"), isNumber(said.parallel) && said.parallel > 1 && `${said.parallel} at once`),
  "iteration.started": (said) => joined(`element ${said.index}`, said.item !== null && brief(said.item)),
  "iteration.ok": (said) => `element ${said.index}`,
  "iteration.error": (said) => joined(`element ${said.index}`, errorOf(said.error)),
  "iterator.completed": (said) =>
    joined(`${said.ok} of ${said.total} ok`, isNumber(said.failed) && said.failed > 0 && `${said.failed} failed`),
};

/** A type that this page does not know: what its first fields say. */
const other: Saying = (said) =>
  Object.entries(said)
    .filter(([, value]) => value !== null && typeof value !== "object" && value !== "")
    .slice(0, 4)
    .map(([key, value]) => `${key} ${String(value)}`)
    .join(" · ");

function joined(...parts: unknown[]): string {
  return parts.filter((part): part is string => typeof part === "string" && part !== "").join(" · ");
}

function isNumber(value: unknown): value is number {
  return typeof value === "number";
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** A failure in one line: its kind and what it says. */
export function errorOf(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "string") return value;
  const { kind, message } = fields(value);
  return joined(
    typeof message === "string" ? `${typeof kind === "string" ? `${kind}: ` : ""}${message}` : brief(value),
  );
}

/** The beginning of a value, as JSON. */
export function brief(value: unknown, most = 120): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "string") return value.length > most ? `${value.slice(0, most)} …` : value;
  if (Array.isArray(value) && value.length > 8) return `[${value.length.toLocaleString("en")} entries]`;
  const json = JSON.stringify(value) ?? "";
  return json.length > most ? `${json.slice(0, most)} …` : json;
}

function given(value: unknown): string {
  const all = fields(value);
  return Object.keys(all).length === 0 ? "" : brief(all);
}

function keys(verb: string, value: unknown): string {
  const all = Object.keys(fields(value));
  return all.length === 0 ? "" : `${verb} ${all.join(", ")}`;
}

function list(word: string, value: unknown): string {
  return Array.isArray(value) && value.length > 0
    ? `${word} ${value.slice(0, 8).join(", ")}${value.length > 8 ? " …" : ""}`
    : "";
}

function counted(value: unknown, word: string): string {
  if (!isNumber(value) || value === 0) return "";
  return `${value.toLocaleString("en")} ${value === 1 ? word : `${word}s`}`;
}

function rows(value: unknown, way: string): string {
  const all = Object.entries(fields(value)).filter((one): one is [string, number] => isNumber(one[1]));
  if (all.length === 0) return "";
  const said = all.map(
    ([port, count]) =>
      (all.length === 1 && (port === "main" || port === "input") ? "" : `${port} `) + count.toLocaleString("en"),
  );
  return `${said.join(", ")} ${all.length === 1 && all[0]?.[1] === 1 ? "row" : "rows"} ${way}`;
}

function range(said: Fields): string {
  if (!isNumber(said.lo)) return "";
  if (!isNumber(said.hi)) return `elements from ${said.lo}`;
  return said.hi === said.lo + 1 ? `element ${said.lo}` : `elements ${said.lo} to ${said.hi - 1}`;
}

function time(value: unknown): string {
  return isNumber(value) && value > 0 ? lasting(value) : "";
}
