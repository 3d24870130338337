/** The main pane with its views, and the side pane that speaks about what is selected. */
import { getRouteApi } from "@tanstack/react-router";
import { lazy, type ReactNode, Suspense, useSyncExternalStore } from "react";
import { chunk } from "@/chunks";
import { EmptyState, ErrorState, IconButton, Loading, Splitter, type Tab, Tabs, useShortcuts } from "@/ui";
import { PANELS, type PanelName, useRunPage, VIEWS, type ViewName } from "../context";
import { titleOf } from "./selection";

const GraphView = lazy(chunk(() => import("../graph/GraphView").then((module) => ({ default: module.GraphView }))));
const Timeline = lazy(chunk(() => import("../timeline/Timeline").then((module) => ({ default: module.Timeline }))));
const Events = lazy(chunk(() => import("../panels/Events")));
const Logs = lazy(chunk(() => import("../panels/Logs")));
const DocumentView = lazy(chunk(() => import("../panels/Document")));
const Why = lazy(chunk(() => import("../panels/Why")));
const Values = lazy(chunk(() => import("../panels/Values")));
const Data = lazy(chunk(() => import("../panels/Data")));

const route = getRouteApi("/shell/runs/$run");

const VIEW_TABS: readonly Tab<ViewName>[] = [
  { id: "graph", label: "Graph", icon: "graph" },
  { id: "timeline", label: "Timeline", icon: "timeline" },
  { id: "events", label: "Events", icon: "list" },
  { id: "logs", label: "Logs", icon: "lines" },
  { id: "document", label: "Document", icon: "documents" },
];

const PANEL_TABS: readonly Tab<PanelName>[] = [
  { id: "why", label: "Why?", icon: "why" },
  { id: "values", label: "Values", icon: "code" },
  { id: "data", label: "Data", icon: "data" },
];

export function Views({ graphError, retryGraph }: { graphError: Error | null; retryGraph: () => void }) {
  const page = useRunPage();
  const { panel } = route.useSearch();
  const navigate = route.useNavigate();
  const isOpen = panel !== "none";
  const isNarrow = useIsNarrow();
  const setOpen = (to: boolean) =>
    void navigate({ search: (before) => ({ ...before, panel: to ? undefined : ("none" as const) }), replace: true });

  useShortcuts("Run", [
    ...VIEWS.map((view, at) => ({
      keys: [String(at + 1)],
      label: VIEW_TABS[at]?.label?.toString() ?? view,
      run: () => page.show(view),
    })),
    ...PANELS.map((one, at) => ({
      keys: [`s ${["w", "v", "d"][at]}`],
      label: `${["Why?", "Values", "Data"][at]} of the selection`,
      run: () => page.showPanel(one),
    })),
    { keys: ["p"], label: "Open or close the side pane", run: () => setOpen(!isOpen) },
  ]);

  const main = (
    <Tabs
      label="Views of the run"
      tabs={VIEW_TABS}
      chosen={page.view}
      onChoose={page.show}
      isTall
      aside={
        isOpen ? undefined : (
          <IconButton icon="chevron-left" label="Open the side pane" keys="p" onClick={() => setOpen(true)} />
        )
      }
    >
      <Suspense fallback={<Loading />}>
        <MainView graphError={graphError} retryGraph={retryGraph} />
      </Suspense>
    </Tabs>
  );
  return (
    <div className="run-views">
      {isOpen ? (
        <Splitter
          id={isNarrow ? "run-below" : "run"}
          label="Width of the side pane"
          direction={isNarrow ? "column" : "row"}
          initial={isNarrow ? 0.6 : 0.66}
          min={0.25}
          max={0.85}
          className="run-splitter"
        >
          {main}
          <SidePane onClose={() => setOpen(false)} />
        </Splitter>
      ) : (
        main
      )}
    </div>
  );
}

function MainView({ graphError, retryGraph }: { graphError: Error | null; retryGraph: () => void }): ReactNode {
  const page = useRunPage();
  const { moment } = page;
  switch (page.view) {
    case "graph":
      if (page.graph === undefined) {
        return graphError === null ? (
          <Loading label="Loading the graph" />
        ) : (
          <ErrorState error={graphError} onRetry={retryGraph} />
        );
      }
      if (page.graph.nodes.length === 0) return <EmptyState icon="graph" title="This document has nothing that runs" />;
      return (
        <GraphView
          id={`${page.run} ${page.scope}`}
          graph={page.graph}
          moment={moment}
          node={page.node}
          edge={page.edge}
          select={page.select}
          selectEdge={page.selectEdge}
          stepInto={page.stepInto}
          showLine={page.showLine}
        />
      );
    case "timeline":
      return <Timeline />;
    case "events":
      return <Events />;
    case "logs":
      return <Logs />;
    case "document":
      return <DocumentView />;
  }
}

function SidePane({ onClose }: { onClose: () => void }) {
  const page = useRunPage();
  return (
    <aside className="run-side" aria-label="About the selection">
      <Tabs
        label="About the selection"
        tabs={PANEL_TABS}
        chosen={page.panel}
        onChoose={page.showPanel}
        isTall
        aside={
          <>
            <span className="run-side-title ellipsis" title={titleOf(page)}>
              {titleOf(page)}
            </span>
            {(page.node !== null || page.edge !== null) && (
              <IconButton size="small" icon="minus" label="Clear the selection" onClick={() => page.select(null)} />
            )}
            <IconButton size="small" icon="close" label="Close the side pane" keys="p" onClick={onClose} />
          </>
        }
      >
        <Suspense fallback={<Loading />}>
          {page.panel === "why" ? <Why /> : page.panel === "values" ? <Values /> : <Data />}
        </Suspense>
      </Tabs>
    </aside>
  );
}

const narrow = typeof matchMedia === "function" ? matchMedia("(max-width: 1000px)") : null;

/** Then there is no room for two panes side by side. */
function useIsNarrow(): boolean {
  return useSyncExternalStore(
    (listener) => {
      narrow?.addEventListener("change", listener);
      return () => narrow?.removeEventListener("change", listener);
    },
    () => narrow?.matches ?? false,
  );
}
