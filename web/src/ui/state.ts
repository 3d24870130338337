/** The states that runs, steps, components and iterations are shown in. Each has a colour (`--state-…`) and an icon of its own shape. */
export const STATES = [
  "waiting",
  "running",
  "ok",
  "failed",
  "skipped",
  "idle",
  "cancelled",
  "interrupted",
  "crashed",
  "retrying",
] as const;
export type State = (typeof STATES)[number];

export const stateWords: Record<State, string> = {
  waiting: "Waiting",
  running: "Running",
  ok: "Completed",
  failed: "Failed",
  skipped: "Skipped",
  idle: "Not run",
  cancelled: "Cancelled",
  interrupted: "Interrupted",
  crashed: "Crashed",
  retrying: "Retrying",
};

const SAME: Record<string, State> = {
  completed: "ok",
  done: "ok",
  succeeded: "ok",
  success: "ok",
  error: "failed",
  pending: "waiting",
  ready: "waiting",
  queued: "waiting",
  scheduled: "waiting",
  planned: "waiting",
  not_run: "idle",
  started: "running",
  leased: "running",
  stopped: "interrupted",
  deleted: "cancelled",
};

/** The state for a word of the API, whatever its case. One that is not known is shown as waiting. */
export function stateOf(word: string): State {
  const plain = word.toLowerCase();
  return (STATES as readonly string[]).includes(plain) ? (plain as State) : (SAME[plain] ?? "waiting");
}
