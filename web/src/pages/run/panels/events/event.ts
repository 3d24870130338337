/** An event as the API gives it: the envelope that `penstock events --json` prints. */
export interface Envelope {
  event_id: string;
  event_type: string;
  ts: string;
  execution_id: string;
  seq: number;
  source: string;
  worker_id: string | null;
  step: string | null;
  step_run_id: string | null;
  task_run_id: string | null;
  scope: string;
  loop_id: string | null;
  shard_id: string | null;
  iter_index: number | null;
  iter_key: string | null;
  trace_id: string | null;
  parent_id: string | null;
  cause: string | null;
  /** Where the server says it: the event that caused this one. */
  cause_seq?: number | null;
  clock: unknown;
  payload: unknown;
}

export interface EventPage {
  events: Envelope[];
  last_seq: number;
  next: number | null;
  scanned: number;
}

/** Where an event happened, as its row says it: the task or scope, or what it is about. */
export function placeOf(event: Envelope): string {
  return event.task_run_id ?? event.shard_id ?? (event.scope !== "" ? event.scope : "");
}

/** The scope in the name of an event: `run/fetch@2:5` lies in `fetch@2`. */
export function scopeOfName(name: string, run: string): string {
  const own = name.startsWith(`${run}/`) ? name.slice(run.length + 1) : name;
  const colon = own.lastIndexOf(":");
  return colon < 0 ? own : own.slice(0, colon);
}

export type Tone =
  | "ok"
  | "failed"
  | "skipped"
  | "running"
  | "waiting"
  | "cancelled"
  | "interrupted"
  | "retrying"
  | "plain";

/** What an event means at a glance, by its type and what it says. */
export function toneOf(event: Envelope): Tone {
  const { event_type: type } = event;
  const said = fields(event.payload);
  if (type === "task.done") {
    if (said.do === "retry") return "retrying";
    return fields(said.outcome).status === "error" ? "failed" : "ok";
  }
  const last = type.slice(type.lastIndexOf(".") + 1);
  if (last === "failed" || last === "error" || last === "stranded" || last === "refused") return "failed";
  if (last === "skipped") return "skipped";
  if (last === "cancelled" || last === "cancelling") return "cancelled";
  if (last === "interrupted" || last === "returned") return "interrupted";
  if (last === "started" || last === "resumed") return "running";
  if (last === "done" || last === "ok" || last === "completed") return "ok";
  return "plain";
}

export type Fields = Record<string, unknown>;

export function fields(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}
