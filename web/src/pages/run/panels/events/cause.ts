/**
 * From the name of a cause to its event.
 *
 * A cause lies before what it caused, and mostly shortly before. So the pages that are there are looked through first, then those just
 * before the event, and at last the events of the place that the name mentions.
 */
import { type Envelope, type EventPage, scopeOfName } from "./event";
import type { EventPages } from "./pages";
import { type EventFilter, NO_FILTER } from "./scan";

const NEAR_PAGES = 4;
const MOST_REQUESTS = 40;
/** The events of an execution itself, which has no place to ask for. */
const OF_RUN = [
  "playbook.started",
  "playbook.resumed",
  "playbook.cancelling",
  "playbook.interrupted",
  "job.started",
  "job.cancelling",
  "job.interrupted",
];

type Load = (request: { after: number; limit: number; filter: EventFilter }) => Promise<EventPage>;

export async function findCause(event: Envelope, pages: EventPages, load: Load): Promise<Envelope | null> {
  const name = event.cause;
  if (name === null) return null;
  if (typeof event.cause_seq === "number") return (await pages.one(event.cause_seq)) ?? null;
  const is = (one: Envelope) => one.event_id === name;
  for (const one of pages.all()) if (is(one)) return one;
  for (let back = 0; back < NEAR_PAGES; back += 1) {
    const first = event.seq - back * pages.size;
    if (first < 1) break;
    const page = await load({ after: Math.max(0, first - pages.size - 1), limit: pages.size, filter: NO_FILTER });
    const found = page.events.find(is);
    if (found !== undefined) return found;
  }
  const place = scopeOfName(name, event.execution_id);
  const filter = place === "" ? { ...NO_FILTER, types: OF_RUN } : { ...NO_FILTER, place };
  let after = 0;
  for (let asked = 0; asked < MOST_REQUESTS && after < event.seq; asked += 1) {
    const page = await load({ after, limit: 1000, filter });
    const found = page.events.find(is);
    if (found !== undefined) return found;
    if (page.next === null || page.next <= after) return null;
    after = page.next;
  }
  return null;
}
