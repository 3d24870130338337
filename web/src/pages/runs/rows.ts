/** The list of runs: pages that were asked for, and news from the stream, as one. */
import type { Run } from "@/live";
import type { RunsSearch } from "./search";

/** What the stream or the server said of a run, and when. */
export interface Heard {
  run: Run;
  at: number;
}

const SPAN = /^(\d+(?:\.\d+)?)\s*([smhdw])$/;
const UNIT_MS: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** `2h` ago, or an ISO 8601 time; null when it is neither. */
export function momentOf(text: string, now: number): number | null {
  const span = SPAN.exec(text);
  if (span !== null) return now - Number(span[1]) * (UNIT_MS[span[2] ?? ""] ?? 0);
  const at = Date.parse(text);
  return Number.isNaN(at) ? null : at;
}

/** Status as the filter has it. */
export function statusOf(run: Run): string {
  return run.crashed ? "crashed" : run.status;
}

/** Whether the server would list it, given the same filter. */
export function matches(run: Run, search: RunsSearch, now: number): boolean {
  const started = Date.parse(run.started_at);
  const since = search.since === undefined ? null : momentOf(search.since, now);
  const until = search.until === undefined ? null : momentOf(search.until, now);
  const wanted = search.q?.toLowerCase();
  return (
    (search.status === undefined || search.status === statusOf(run)) &&
    (search.kind === undefined || search.kind === run.kind) &&
    (search.name === undefined || search.name === run.name || search.name === run.label) &&
    (search.label === undefined || search.label === run.label) &&
    (since === null || started >= since) &&
    (until === null || started <= until) &&
    (wanted === undefined ||
      [run.name, run.label ?? "", run.execution_id, run.file].some((text) => text.toLowerCase().includes(wanted)))
  );
}

/** Of two answers about one run the one that knows more events; of equals the later one. Why it failed is not forgotten. */
function newer(one: Heard, other: Heard): Heard {
  const [late, early] = one.at >= other.at ? [one, other] : [other, one];
  const chosen = late.run.events >= early.run.events ? late : early;
  const rest = chosen === late ? early : late;
  const isSame = statusOf(chosen.run) === statusOf(rest.run);
  const reason = chosen.run.reason ?? (isSame ? rest.run.reason : null) ?? null;
  return { at: chosen.at, run: reason === chosen.run.reason ? chosen.run : { ...chosen.run, reason } };
}

export function merged(heard: ReadonlyMap<string, Heard>, news: readonly Run[], at: number): Map<string, Heard> {
  const all = new Map(heard);
  for (const run of news) {
    const before = all.get(run.execution_id);
    all.set(run.execution_id, before === undefined ? { run, at } : newer({ run, at }, before));
  }
  return all;
}

/** The rows to show, newest first. What is older than the last page that was asked for is not shown before its page is. */
export function rowsOf(
  listed: readonly Run[],
  listedAt: number,
  hasMore: boolean,
  heard: ReadonlyMap<string, Heard>,
  search: RunsSearch,
  now: number,
): Run[] {
  const all = new Map<string, Heard>(listed.map((run) => [run.execution_id, { run, at: listedAt }]));
  const oldest = hasMore ? (listed.at(-1)?.started_at ?? "") : "";
  for (const [id, one] of heard) {
    const before = all.get(id);
    if (before !== undefined) all.set(id, newer(one, before));
    else if (one.run.started_at >= oldest) all.set(id, one);
  }
  return [...all.values()]
    .map((one) => one.run)
    .filter((run) => matches(run, search, now))
    .sort((a, b) => (a.started_at < b.started_at ? 1 : a.started_at > b.started_at ? -1 : 0));
}

export function canCancel(run: Run): boolean {
  const status = statusOf(run);
  return status === "running" || status === "interrupted" || status === "crashed";
}

export function canResume(run: Run): boolean {
  const status = statusOf(run);
  return (
    status === "failed" ||
    status === "interrupted" ||
    status === "crashed" ||
    (status === "completed" && run.failed_iterations > 0)
  );
}
