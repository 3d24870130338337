import { getRouteApi } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, useEffect, useId, useMemo, useRef, useState } from "react";
import { useSession } from "@/api/session";
import type { Run } from "@/live";
import {
  Button,
  Checkbox,
  counted,
  EmptyState,
  ErrorState,
  Loading,
  type MenuItem,
  plural,
  toast,
  useShortcuts,
} from "@/ui";
import { type RunActions, useRunActions } from "./actions";
import { Filters, States } from "./Filters";
import { statKey, useRunList, useStats } from "./queries";
import { RunRow } from "./RunRow";
import { canCancel, canResume } from "./rows";
import type { RunsSearch } from "./search";
import "./runs.css";

const route = getRouteApi("/shell/runs");
const ROW = 46;
/** So many rows before the end the next page is asked for. */
const AHEAD = 30;

export function RunsPage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const { can } = useSession();
  const list = useRunList(search);
  const stats = useStats();
  const searchField = useRef<HTMLInputElement>(null);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [current, setCurrent] = useState<string | null>(null);
  const actions = useRunActions(() => setSelected(new Set()));
  const { rows } = list;
  const chosen = useMemo(() => rows.filter((run) => selected.has(run.execution_id)), [rows, selected]);

  const change = (to: Partial<RunsSearch>) =>
    void navigate({ search: (before) => ({ ...before, ...to }), replace: true });
  const open = (run: Run) => void navigate({ to: "/runs/$run", params: { run: run.execution_id } });
  const compare = (left: Run, right: Run) =>
    void navigate({ to: "/compare", search: { left: left.execution_id, right: right.execution_id } });

  function toggle(id: string) {
    const now = new Set(selected);
    if (!now.delete(id)) now.add(id);
    setSelected(now);
  }

  const at = rows.findIndex((run) => run.execution_id === current);
  const frame = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => frame.current,
    estimateSize: () => ROW,
    getItemKey: (index) => rows[index]?.execution_id ?? index,
    overscan: 10,
  });
  const items = virtual.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  const { hasMore, loadMore } = list;
  // biome-ignore lint/correctness/useExhaustiveDependencies: asked again when the end comes nearer, not whenever the function is made anew.
  useEffect(() => {
    if (hasMore && last >= rows.length - AHEAD) loadMore();
  }, [hasMore, last, rows.length]);

  function go(to: number) {
    const place = Math.min(rows.length - 1, Math.max(0, to));
    const run = rows[place];
    if (run === undefined) return;
    setCurrent(run.execution_id);
    virtual.scrollToIndex(place);
  }

  const currentRun = rows[at];
  useShortcuts("Runs", [
    { keys: ["j", "ArrowDown"], label: "Next run", run: () => go(at + 1) },
    { keys: ["k", "ArrowUp"], label: "Previous run", run: () => go(at - 1) },
    {
      keys: ["Enter"],
      label: "Open the run",
      run: () => currentRun && open(currentRun),
      isDisabled: currentRun === undefined,
    },
    { keys: ["x"], label: "Select the run", run: () => currentRun && toggle(currentRun.execution_id) },
    { keys: ["/"], label: "Search", run: () => searchField.current?.focus() },
    {
      keys: ["Escape"],
      label: "Clear the selection",
      run: () => setSelected(new Set()),
      isDisabled: selected.size === 0,
    },
  ]);

  function onKeyDown(event: KeyboardEvent) {
    const page = Math.max(1, Math.floor((frame.current?.clientHeight ?? 0) / ROW) - 2);
    const to = { Home: 0, End: rows.length - 1, PageDown: at + page, PageUp: at - page }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    go(to);
  }

  const menuOf = (run: Run): (MenuItem | "line")[] => {
    const other = chosen.find((one) => one !== run);
    return [
      { label: "Open", icon: "arrow-right", hint: "Enter", onSelect: () => open(run) },
      { label: `Only ${run.name}`, icon: "filter", onSelect: () => change({ name: run.name }) },
      ...(chosen.length === 1 && other !== undefined
        ? [{ label: "Compare with the selected run", icon: "compare" as const, onSelect: () => compare(other, run) }]
        : []),
      { label: "Copy the id", icon: "copy", onSelect: () => void copyId(run) },
      ...(can("run") && (canResume(run) || canCancel(run)) ? (["line"] as const) : []),
      ...(can("run") && canResume(run)
        ? [{ label: "Resume", icon: "resume" as const, onSelect: () => actions.resume([run]) }]
        : []),
      ...(can("run") && canCancel(run)
        ? [{ label: "Cancel …", icon: "cancelled" as const, isDangerous: true, onSelect: () => actions.cancel([run]) }]
        : []),
    ];
  };

  const base = useId();
  const isAll = rows.length > 0 && chosen.length === rows.length;
  const isFiltered = Object.values(search).some((value) => value !== undefined);
  return (
    <div className="page-tall">
      <h1 className="visually-hidden">Runs</h1>
      <div className="page-head runs-head">
        <Filters
          search={search}
          change={change}
          documents={useMemo(() => [...new Set([...stats.values()].map((stat) => stat.name))].sort(), [stats])}
          searchRef={searchField}
        />
        <div className="runs-head-row">
          <States search={search} change={change} />
          {isFiltered && (
            <Button look="quiet" size="small" icon="close" onClick={() => void navigate({ search: {}, replace: true })}>
              Clear
            </Button>
          )}
          <span className="runs-count quiet" role="status">
            {list.isLoading
              ? ""
              : `${counted(rows.length)}${list.hasMore ? "+" : ""} ${rows.length === 1 ? "run" : "runs"}`}
          </span>
        </div>
      </div>
      {chosen.length > 0 && (
        <Selection chosen={chosen} actions={actions} compare={compare} clear={() => setSelected(new Set())} />
      )}
      {list.isLoading ? (
        <Loading rows={12} label="Loading runs" />
      ) : list.error !== null ? (
        <ErrorState error={list.error} title="The runs cannot be listed" onRetry={list.retry} />
      ) : rows.length === 0 ? (
        <Nothing isFiltered={isFiltered} clear={() => void navigate({ search: {}, replace: true })} />
      ) : (
        <div ref={frame} className="runs-frame">
          <div
            role="grid"
            aria-label="Runs"
            aria-rowcount={list.hasMore ? -1 : rows.length + 1}
            aria-multiselectable
            aria-activedescendant={items.some((item) => item.index === at) ? `${base}-${at}` : undefined}
            tabIndex={0}
            className="runs-grid"
            onKeyDown={onKeyDown}
          >
            <div role="rowgroup" className="runs-heads">
              <div role="row" aria-rowindex={1} className="runs-row runs-row-head">
                <span role="columnheader" className="runs-cell-check">
                  <Checkbox
                    label="Select all that are listed"
                    isLabelHidden
                    checked={isAll}
                    isMixed={chosen.length > 0 && !isAll}
                    onChange={() => setSelected(isAll ? new Set() : new Set(rows.map((run) => run.execution_id)))}
                  />
                </span>
                <span role="columnheader">State</span>
                <span role="columnheader">Document</span>
                <span role="columnheader" className="runs-cell-spark">
                  Recent durations
                </span>
                <span role="columnheader" className="runs-cell-duration">
                  Duration
                </span>
                <span role="columnheader" className="runs-cell-time">
                  Started
                </span>
                <span role="columnheader" className="runs-cell-events">
                  Events
                </span>
                <span role="columnheader" className="runs-cell-id">
                  Id
                </span>
                <span role="columnheader" className="runs-cell-menu">
                  <span className="visually-hidden">Actions</span>
                </span>
              </div>
            </div>
            <div role="rowgroup" style={{ height: virtual.getTotalSize(), position: "relative" }}>
              {items.map((item) => {
                const run = rows[item.index];
                if (run === undefined) return null;
                return (
                  <RunRow
                    key={run.execution_id}
                    run={run}
                    id={`${base}-${item.index}`}
                    index={item.index}
                    top={item.start}
                    stat={stats.get(statKey(run.kind, run.name))}
                    isCurrent={item.index === at}
                    isSelected={selected.has(run.execution_id)}
                    canSelect
                    onOpen={() => open(run)}
                    onCurrent={() => setCurrent(run.execution_id)}
                    onSelect={() => toggle(run.execution_id)}
                    change={change}
                    items={menuOf(run)}
                  />
                );
              })}
            </div>
          </div>
          {list.isLoadingMore && <div className="runs-more quiet">Loading older runs …</div>}
        </div>
      )}
      {actions.dialog}
    </div>
  );
}

interface SelectionProps {
  chosen: readonly Run[];
  actions: RunActions;
  compare: (left: Run, right: Run) => void;
  clear: () => void;
}

/** What can be done with the selected runs: only what makes sense for at least one of them. */
function Selection({ chosen, actions, compare, clear }: SelectionProps) {
  const { can } = useSession();
  const resumable = chosen.filter(canResume);
  const cancellable = chosen.filter(canCancel);
  // The older one to the left, whichever was selected first.
  const [right, left] = chosen;
  return (
    <section className="runs-selection" aria-label="Selected runs">
      <strong>{plural(chosen.length, "run")} selected</strong>
      <Button
        icon="compare"
        size="small"
        disabled={chosen.length !== 2}
        title={chosen.length === 2 ? undefined : "Select two runs to compare them"}
        onClick={() => left !== undefined && right !== undefined && compare(left, right)}
      >
        Compare
      </Button>
      {can("run") && (
        <>
          <Button
            icon="resume"
            size="small"
            disabled={resumable.length === 0}
            isBusy={actions.isBusy}
            onClick={() => actions.resume(resumable)}
          >
            Resume{resumable.length > 0 && resumable.length < chosen.length ? ` ${resumable.length}` : ""}
          </Button>
          <Button
            icon="cancelled"
            size="small"
            disabled={cancellable.length === 0}
            isBusy={actions.isBusy}
            onClick={() => actions.cancel(cancellable)}
          >
            Cancel{cancellable.length > 0 && cancellable.length < chosen.length ? ` ${cancellable.length}` : ""} …
          </Button>
        </>
      )}
      <Button look="quiet" size="small" icon="close" onClick={clear}>
        Clear the selection
      </Button>
    </section>
  );
}

function Nothing({ isFiltered, clear }: { isFiltered: boolean; clear: () => void }) {
  return isFiltered ? (
    <EmptyState icon="filter" title="No run matches" actions={<Button onClick={clear}>Clear the filters</Button>}>
      Try other filters.
    </EmptyState>
  ) : (
    <EmptyState icon="runs" title="No runs yet">
      <p>
        Start one in a terminal with <code className="ui-literal">penstock run FILE</code>, or from a document on this
        page. It appears here by itself.
      </p>
    </EmptyState>
  );
}

async function copyId(run: Run) {
  try {
    await navigator.clipboard.writeText(run.execution_id);
    toast("done", `copied ${run.execution_id}`);
  } catch {
    toast("failed", "the browser does not let this page copy");
  }
}
