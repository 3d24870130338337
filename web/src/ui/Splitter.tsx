import { type KeyboardEvent, type PointerEvent, type ReactNode, useRef, useState } from "react";
import { names } from "./names";

interface SplitterProps {
  /** The place is kept under this name in the browser. */
  id: string;
  label: string;
  /** How the panes lie: side by side, or one above the other. */
  direction?: "row" | "column";
  /** The share of the first pane, from 0 to 1. */
  initial?: number;
  min?: number;
  max?: number;
  children: readonly [ReactNode, ReactNode];
  className?: string;
}

/** Two panes and a bar between them that is moved by pointer or by arrows; a double click puts it back. */
export function Splitter({
  id,
  label,
  direction = "row",
  initial = 0.5,
  min = 0.15,
  max = 0.85,
  children,
  className,
}: SplitterProps) {
  const key = `penstock.splitter.${id}`;
  const within = (share: number) => Math.min(max, Math.max(min, share));
  const [share, setShare] = useState(() => within(Number(kept(key)) || initial));
  const frame = useRef<HTMLDivElement>(null);
  const isRow = direction === "row";

  function move(to: number) {
    const next = within(to);
    setShare(next);
    keep(key, String(Math.round(next * 1000) / 1000));
  }

  function onPointerMove(event: PointerEvent<HTMLDivElement>) {
    if (!event.currentTarget.hasPointerCapture(event.pointerId) || frame.current === null) return;
    const at = frame.current.getBoundingClientRect();
    move(isRow ? (event.clientX - at.left) / at.width : (event.clientY - at.top) / at.height);
  }

  function onKeyDown(event: KeyboardEvent) {
    const step = event.shiftKey ? 0.1 : 0.02;
    const less = isRow ? "ArrowLeft" : "ArrowUp";
    const more = isRow ? "ArrowRight" : "ArrowDown";
    const to = { [less]: share - step, [more]: share + step, Home: min, End: max, Enter: initial }[event.key];
    if (to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    move(to);
  }

  return (
    <div ref={frame} className={names("ui-splitter", `ui-splitter-${direction}`, className)}>
      <div className="ui-pane" style={{ flexBasis: `${share * 100}%` }}>
        {children[0]}
      </div>
      {/* biome-ignore lint/a11y/useSemanticElements: a separator that can be moved is a widget, which <hr> is not. */}
      <div
        role="separator"
        aria-label={label}
        aria-orientation={isRow ? "vertical" : "horizontal"}
        aria-valuenow={Math.round(share * 100)}
        aria-valuemin={Math.round(min * 100)}
        aria-valuemax={Math.round(max * 100)}
        tabIndex={0}
        className="ui-splitter-bar"
        onPointerDown={(event) => {
          event.preventDefault();
          event.currentTarget.setPointerCapture(event.pointerId);
        }}
        onPointerMove={onPointerMove}
        onKeyDown={onKeyDown}
        onDoubleClick={() => move(initial)}
      />
      <div className="ui-pane" style={{ flexBasis: `${(1 - share) * 100}%` }}>
        {children[1]}
      </div>
    </div>
  );
}

function kept(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

function keep(key: string, value: string) {
  try {
    localStorage.setItem(key, value);
  } catch {
    // Then it holds until the page is loaded again.
  }
}
