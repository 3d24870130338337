import { Link } from "@tanstack/react-router";
import type { MouseEvent } from "react";
import type { StatOut } from "@/api/schema";
import type { Run } from "@/live";
import { Checkbox, Duration, Icon, Menu, type MenuItem, Num, names, Prose, pathEnd, StatusBadge, Time } from "@/ui";
import type { Change } from "./Filters";
import { statusOf } from "./rows";
import { Sparkline } from "./Sparkline";

interface RunRowProps {
  run: Run;
  id: string;
  index: number;
  top: number;
  stat: StatOut | undefined;
  isCurrent: boolean;
  isSelected: boolean;
  canSelect: boolean;
  onOpen: () => void;
  onCurrent: () => void;
  onSelect: () => void;
  change: Change;
  items: readonly (MenuItem | "line")[];
}

export function RunRow(props: RunRowProps) {
  const { run, id, index, top, stat, isCurrent, isSelected, canSelect, onOpen, onCurrent, onSelect, change, items } =
    props;
  const status = statusOf(run);
  const isOver = run.duration_ms !== null;

  function onClick(event: MouseEvent) {
    onCurrent();
    // What is inside the row does its own thing; a text that is being selected is not a click.
    if ((event.target as Element).closest("a, button, input, label") !== null) return;
    if (window.getSelection()?.isCollapsed === false) return;
    onOpen();
  }

  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the grid has the focus, and its keys do the same.
    <div
      role="row"
      id={id}
      aria-rowindex={index + 2}
      aria-selected={isSelected}
      className={names("runs-row", isCurrent && "runs-row-current")}
      style={{ transform: `translateY(${top}px)` }}
      onClick={onClick}
    >
      <span role="gridcell" className="runs-cell-check">
        {canSelect && (
          <Checkbox
            label={`Select run ${run.execution_id}`}
            isLabelHidden
            checked={isSelected}
            onChange={onSelect}
            tabIndex={-1}
          />
        )}
      </span>
      <span role="gridcell" className="runs-cell-state">
        <StatusBadge state={status} />
      </span>
      <span role="gridcell" className="runs-cell-name">
        <span className="runs-line">
          <span className="quiet" title={run.kind}>
            <Icon name={run.kind === "job" ? "job" : "playbook"} size={14} label={run.kind} />
          </span>
          <Link to="/runs/$run" params={{ run: run.execution_id }} className="runs-name ellipsis" tabIndex={-1}>
            {run.name}
          </Link>
          {run.label !== null && (
            <button
              type="button"
              className="runs-label"
              tabIndex={-1}
              title={`Only runs with the label ${run.label}`}
              onClick={() => change({ label: run.label ?? undefined })}
            >
              {run.label}
            </button>
          )}
          {run.failed_iterations > 0 && (
            <span className="runs-partly">
              {run.failed_iterations.toLocaleString("en")} {run.failed_iterations === 1 ? "iteration" : "iterations"}{" "}
              failed
            </span>
          )}
        </span>
        <span className="runs-line runs-second ellipsis">
          {run.reason ? (
            <span className={`ui-ink-${status} runs-reason`} title={run.reason}>
              <Prose text={run.reason} />
            </span>
          ) : (
            <span title={run.file}>{pathEnd(run.file)}</span>
          )}
        </span>
      </span>
      <span role="gridcell" className="runs-cell-spark">
        {stat !== undefined && <Sparkline stat={stat} run={run.execution_id} />}
      </span>
      <span role="gridcell" className="runs-cell-duration">
        {isOver ? (
          <Duration ms={run.duration_ms} />
        ) : status === "running" ? (
          <Duration since={run.started_at} />
        ) : (
          <Duration />
        )}
      </span>
      <span role="gridcell" className="runs-cell-time">
        <Time value={run.started_at} />
      </span>
      <span role="gridcell" className="runs-cell-events">
        <Num value={run.events} isShort />
      </span>
      <span role="gridcell" className="runs-cell-id mono">
        {run.execution_id.slice(0, 12)}
      </span>
      <span role="gridcell" className="runs-cell-menu">
        <Menu label={`Actions on run ${run.execution_id}`} align="end" size="small" items={items} />
      </span>
    </div>
  );
}
