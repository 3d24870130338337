/** The page of one run: its state at one moment, in several views that move together. */
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { ApiError, answered, api } from "@/api/client";
import { useRun } from "@/live";
import { useCrumb } from "@/shell/Breadcrumbs";
import { Button, EmptyState, ErrorState, Loading } from "@/ui";
import { type Graph, type Marks, RunPageContext, type RunPage as Shared } from "./context";
import { Header } from "./frame/Header";
import { Views } from "./frame/Views";
import { useMoments } from "./moments";
import { type RunSearch, readLine } from "./search";
import { TimeSlider } from "./slider/TimeSlider";
import "./run.css";

const route = getRouteApi("/shell/runs/$run");

/** Marks of a run that goes on are asked for at most so often. */
const MARKS_MS = 2000;
/** The address is written when a hand that drags the slider rests. */
const RESTING_MS = 160;

export function RunPage() {
  const { run } = route.useParams();
  return <OneRun key={run} run={run} />;
}

function OneRun({ run }: { run: string }) {
  const search = route.useSearch();
  const { at, goTo } = useAt(search);
  const scope = search.scope ?? "";
  const shown = useMoments(run, scope, at);
  const { moment, error, source } = shown;

  const executionId = moment?.execution_id ?? null;
  const tick = useRun(executionId, (news) => source.tick(news.seq, news.status));
  const status = tick?.status;

  const graph = useGraph(run, scope);
  const last = Math.max(moment?.last_seq ?? 0, tick?.seq ?? 0);
  const marks = useMarks(run, last, moment?.is_live ?? false);
  useCrumb(moment === undefined ? null : `${moment.label ?? moment.name} · ${moment.execution_id.slice(0, 8)}`);

  const page = useShared({ run, scope, at, moment, graph: graph.data, marks, search, goTo });
  if (error !== null && moment === undefined)
    return <Failed error={error} run={run} scope={scope} onRetry={() => source.refresh()} />;
  if (moment === undefined) {
    return (
      <div className="run-page">
        <h1 className="visually-hidden">Run {run}</h1>
        <Loading rows={10} label="Loading the run" />
      </div>
    );
  }
  return (
    <RunPageContext value={page}>
      <div className="run-page">
        <Header />
        <Views graphError={graph.error} retryGraph={() => void graph.refetch()} />
        <TimeSlider last={last} isGoing={status === undefined ? moment.is_live : status === "running"} onDrag={goTo} />
      </div>
    </RunPageContext>
  );
}

/** The moment that is shown. A hand that drags is followed at once, and the address when it rests. */
function useAt(search: RunSearch): { at: number | null; goTo: (seq: number | null) => void } {
  const navigate = route.useNavigate();
  const [dragged, setDragged] = useState<{ at: number | null; from: number | undefined } | null>(null);
  const timer = useRef<number | undefined>(undefined);
  useEffect(() => () => window.clearTimeout(timer.current), []);
  const inAddress = search.at;
  // Once the address says it, or says something else, it is the address that counts.
  const isOver = dragged !== null && inAddress !== dragged.from;
  const at = dragged === null || isOver ? (inAddress ?? null) : dragged.at;
  const goTo = useCallback(
    (seq: number | null) => {
      setDragged({ at: seq, from: inAddress });
      window.clearTimeout(timer.current);
      timer.current = window.setTimeout(() => {
        void navigate({ search: (before) => ({ ...before, at: seq ?? undefined }), replace: true });
      }, RESTING_MS);
    },
    [navigate, inAddress],
  );
  return { at, goTo };
}

function useGraph(run: string, scope: string) {
  return useQuery({
    queryKey: ["run", run, "net", scope],
    queryFn: ({ signal }): Promise<Graph> =>
      answered(api.GET("/api/executions/{run}/net", { params: { path: { run }, query: { scope } }, signal })),
    // It depends on the document alone, which a run is pinned to.
    staleTime: Number.POSITIVE_INFINITY,
  });
}

function useMarks(run: string, last: number, isLive: boolean): Marks | undefined {
  const { data, refetch } = useQuery({
    queryKey: ["run", run, "marks"],
    queryFn: ({ signal }): Promise<Marks> =>
      answered(api.GET("/api/executions/{run}/marks", { params: { path: { run } }, signal })),
    staleTime: MARKS_MS,
    // A long run is read by the server piece by piece.
    refetchInterval: ({ state }) =>
      state.data !== undefined && state.data.folded_to < state.data.last_seq ? 500 : false,
  });
  const known = data?.last_seq ?? 0;
  useEffect(() => {
    if (data === undefined || last <= known) return;
    const timer = window.setTimeout(() => void refetch(), isLive ? MARKS_MS : 200);
    return () => window.clearTimeout(timer);
  }, [last, known, isLive, data, refetch]);
  return data;
}

type Given = Pick<Shared, "run" | "scope" | "at" | "moment" | "graph" | "marks" | "goTo"> & { search: RunSearch };

function useShared({ run, scope, at, moment, graph, marks, search, goTo }: Given): Shared {
  const navigate = route.useNavigate();
  const now = useRef(graph);
  useEffect(() => {
    now.current = graph;
  });
  const acts = useMemo(() => {
    const change = (search: Partial<RunSearch>, isStep = false) =>
      void navigate({ search: (before) => ({ ...before, ...search }), replace: !isStep });
    return {
      select: (node: string | null, part: string | null = null) =>
        change({ node: node ?? undefined, part: part ?? undefined, edge: undefined }),
      selectEdge: (edge: string | null) => {
        const isData = now.current?.edges.find((one) => one.id === edge)?.kind === "data";
        // Rows are what one wants to see of a data link.
        change({
          edge: edge ?? undefined,
          node: undefined,
          part: undefined,
          ...(isData && { panel: "data" as const }),
        });
      },
      stepInto: (to: string) =>
        change({ scope: to === "" ? undefined : to, node: undefined, part: undefined, edge: undefined }, true),
      show: (view: RunSearch["view"]) => change({ view }, true),
      showPanel: (panel: RunSearch["panel"]) => change({ panel }),
      showEvent: (seq: number) => change({ event: seq, view: "events" }, true),
      showLine: (file: string, line: number) => change({ line: `${file}:${line}`, view: "document" }, true),
    };
  }, [navigate]);
  const { view = "graph", panel, node = null, part = null, edge = null, event = null, line } = search;
  const shownPanel = panel === undefined || panel === "none" ? "why" : panel;
  return useMemo(
    () => ({
      run,
      scope,
      at,
      moment,
      graph,
      marks,
      node,
      part,
      edge,
      event,
      view,
      panel: shownPanel,
      line: readLine(line),
      goTo,
      ...acts,
    }),
    [run, scope, at, moment, graph, marks, node, part, edge, event, view, shownPanel, line, goTo, acts],
  );
}

function Failed({ error, run, scope, onRetry }: { error: unknown; run: string; scope: string; onRetry: () => void }) {
  const navigate = route.useNavigate();
  const heading = <h1 className="visually-hidden">Run {run}</h1>;
  if (error instanceof ApiError && error.status === 404) {
    return (
      <>
        {heading}
        <EmptyState
          icon="search"
          title={scope === "" ? "There is no such run" : "There is no such execution in this run"}
          actions={
            scope === "" ? (
              <Button icon="runs" onClick={() => void navigate({ to: "/runs" })}>
                All runs
              </Button>
            ) : (
              <Button icon="arrow-left" onClick={() => void navigate({ search: {} })}>
                The run itself
              </Button>
            )
          }
        >
          <p>
            <code>{scope === "" ? run : scope}</code> is not known here. It may have been pruned, or it belongs to
            another server.
          </p>
        </EmptyState>
      </>
    );
  }
  return (
    <>
      {heading}
      <ErrorState error={error} onRetry={onRetry} />
    </>
  );
}
