/** Events for tests. */
import type { Envelope, EventPage } from "./event";

export function made(seq: number, more: Partial<Envelope> = {}): Envelope {
  return {
    event_id: `r/s@0:${seq}`,
    event_type: "task.done",
    ts: "2026-11-18T13:26:15.720574Z",
    execution_id: "r",
    seq,
    source: "server",
    worker_id: null,
    step: "s",
    step_run_id: "s@0",
    task_run_id: null,
    scope: "s@0",
    loop_id: null,
    shard_id: null,
    iter_index: null,
    iter_key: null,
    trace_id: null,
    parent_id: "r",
    cause: null,
    clock: [],
    payload: {},
    ...more,
  };
}

/** A log of this many events that answers as the API does. */
export function log(
  size: () => number,
  matches: (event: Envelope) => boolean = () => true,
  scan = Number.POSITIVE_INFINITY,
) {
  const asked: number[] = [];
  const load = async ({ after, limit }: { after: number; limit: number }): Promise<EventPage> => {
    asked.push(after);
    const events: Envelope[] = [];
    let at = after;
    while (at < size() && events.length < limit && at - after < scan) {
      at += 1;
      const event = made(at);
      if (matches(event)) events.push(event);
    }
    return { events, last_seq: size(), next: at >= size() ? null : at, scanned: at - after };
  };
  return { load, asked };
}
