import { infiniteQueryOptions, useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { answered, api } from "@/api/client";
import type { StatOut } from "@/api/schema";
import { type Run, useRunsFeed } from "@/live";
import { useNow } from "@/ui";
import { type Heard, merged, rowsOf, statusOf } from "./rows";
import type { RunsSearch } from "./search";

const PAGE = 100;
const WAITS_MS = 10_000;
const STATS_MS = 5_000;
/** Reasons are asked for one by one; after a storm of failures the list itself is asked for again. */
const MOST_REASONS = 8;

function listing(search: RunsSearch) {
  return infiniteQueryOptions({
    queryKey: ["runs", "list", search],
    queryFn: ({ pageParam, signal }) =>
      answered(api.GET("/api/executions", { params: { query: { ...search, limit: PAGE, after: pageParam } }, signal })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next ?? undefined,
    staleTime: 0,
    placeholderData: (before) => before,
  });
}

export interface RunList {
  rows: Run[];
  isLoading: boolean;
  error: unknown;
  hasMore: boolean;
  isLoadingMore: boolean;
  loadMore: () => void;
  retry: () => void;
}

/** The runs that match, live. */
export function useRunList(search: RunsSearch): RunList {
  const query = useInfiniteQuery(listing(search));
  const queries = useQueryClient();
  const [heard, setHeard] = useState<ReadonlyMap<string, Heard>>(new Map());
  const now = useNow(60_000);

  const hear = useCallback((runs: readonly Run[]) => setHeard((before) => merged(before, runs, Date.now())), []);
  useRunsFeed(hear);

  const listed = useMemo(() => query.data?.pages.flatMap((page) => page.runs) ?? [], [query.data]);
  const rows = useMemo(
    () => rowsOf(listed, query.dataUpdatedAt, query.hasNextPage, heard, search, now),
    [listed, query.dataUpdatedAt, query.hasNextPage, heard, search, now],
  );

  // Why a run failed is not in what the stream tells; the list says it, where it says anything.
  const asked = useRef(new Set<string>());
  useEffect(() => {
    const known = new Map(listed.map((run) => [run.execution_id, statusOf(run)]));
    const unclear = rows.filter(
      (run) =>
        isUnclear(run) &&
        known.get(run.execution_id) !== statusOf(run) &&
        !asked.current.has(`${run.execution_id} ${run.events}`),
    );
    if (query.isPending || unclear.length === 0) return;
    for (const run of unclear) asked.current.add(`${run.execution_id} ${run.events}`);
    if (unclear.length > MOST_REASONS) void queries.invalidateQueries({ queryKey: ["runs", "list"] });
    else void withReasons(unclear).then(hear);
  }, [rows, listed, query.isPending, queries, hear]);

  // Whether a run waits for a worker is in no log, so the stream does not tell.
  const isAnyRunning = rows.some((run) => statusOf(run) === "running");
  const waiting = useQuery({
    queryKey: ["runs", "waiting"],
    queryFn: ({ signal }) =>
      answered(api.GET("/api/executions", { params: { query: { status: "running", limit: 200 } }, signal })),
    enabled: isAnyRunning,
    refetchInterval: WAITS_MS,
  });
  const waits = useMemo(
    () => new Map(waiting.data?.runs.map((run) => [run.execution_id, run.reason ?? null])),
    [waiting.data],
  );
  const shown = useMemo(
    () =>
      rows.map((run) =>
        statusOf(run) === "running" && waits.has(run.execution_id)
          ? { ...run, reason: waits.get(run.execution_id) ?? null }
          : run,
      ),
    [rows, waits],
  );

  return {
    rows: shown,
    isLoading: query.isPending,
    error: query.data === undefined ? query.error : null,
    hasMore: query.hasNextPage,
    isLoadingMore: query.isFetchingNextPage,
    loadMore: () => void (query.hasNextPage && !query.isFetchingNextPage && query.fetchNextPage()),
    retry: () => void query.refetch(),
  };
}

function isUnclear(run: Run): boolean {
  return run.reason == null && ["failed", "interrupted", "cancelled", "crashed"].includes(statusOf(run));
}

async function withReasons(runs: readonly Run[]): Promise<Run[]> {
  const asked = runs.map((run) =>
    answered(api.GET("/api/executions/{run}/header", { params: { path: { run: run.execution_id } } })),
  );
  const told = await Promise.allSettled(asked);
  return told.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
}

/** The latest durations of every document, by kind and name. */
export function useStats(): ReadonlyMap<string, StatOut> {
  const queries = useQueryClient();
  const { data } = useQuery({
    queryKey: ["runs", "stats"],
    queryFn: ({ signal }) => answered(api.GET("/api/stats", { params: { query: { limit: 20 } }, signal })),
    staleTime: STATS_MS,
  });
  const due = useRef<number | undefined>(undefined);
  useRunsFeed((runs) => {
    if (due.current !== undefined || !runs.some((run) => run.ended_at !== null)) return;
    due.current = window.setTimeout(() => {
      due.current = undefined;
      void queries.invalidateQueries({ queryKey: ["runs", "stats"] });
    }, STATS_MS);
  });
  useEffect(
    () => () => {
      window.clearTimeout(due.current);
      due.current = undefined;
    },
    [],
  );
  return useMemo(() => new Map(data?.documents.map((stat) => [statKey(stat.kind, stat.name), stat])), [data]);
}

export function statKey(kind: string, name: string): string {
  return `${kind} ${name}`;
}
