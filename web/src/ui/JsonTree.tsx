/** JSON as a tree. Only rows in sight are in the page, so that ten thousand entries are no burden; arrows move and open. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, useId, useMemo, useRef, useState } from "react";
import { CopyButton } from "./CopyButton";
import { Icon } from "./Icon";
import { type JsonRow, rowsOf } from "./json";
import { names } from "./names";

interface JsonTreeProps {
  value: unknown;
  label?: string;
  /** How many levels are open at first. */
  depth?: number;
  /** In pixels; what is longer scrolls. */
  maxHeight?: number;
}

const ROW = 22;

export function JsonTree({ value, label = "JSON", depth = 2, maxHeight = 480 }: JsonTreeProps) {
  const base = useId();
  const [toggled, setToggled] = useState<ReadonlySet<string>>(new Set());
  const [current, setCurrent] = useState("$");
  const rows = useMemo(() => rowsOf(value, depth, toggled), [value, depth, toggled]);
  const frame = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => frame.current,
    estimateSize: () => ROW,
    overscan: 12,
  });
  const at = Math.max(
    0,
    rows.findIndex((row) => row.path === current),
  );

  function toggle(row: JsonRow) {
    if (!row.isBranch) return;
    const now = new Set(toggled);
    if (!now.delete(row.path)) now.add(row.path);
    setToggled(now);
  }

  function go(to: number) {
    const row = rows[Math.min(rows.length - 1, Math.max(0, to))];
    if (row === undefined) return;
    setCurrent(row.path);
    virtual.scrollToIndex(rows.indexOf(row));
  }

  function onKeyDown(event: KeyboardEvent) {
    const row = rows[at];
    if (row === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor((frame.current?.clientHeight ?? 0) / ROW) - 1);
    const to = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      PageDown: at + page,
      PageUp: at - page,
      Home: 0,
      End: rows.length - 1,
    }[event.key];
    if (to !== undefined) go(to);
    else if (event.key === "ArrowRight") row.isBranch && !row.isOpen ? toggle(row) : go(at + 1);
    else if (event.key === "ArrowLeft") {
      if (row.isBranch && row.isOpen) toggle(row);
      else go(rows.findLastIndex((one, place) => place < at && one.level < row.level));
    } else if (event.key === "Enter" || event.key === " ") toggle(row);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  return (
    <div className="ui-json">
      <div className="ui-json-copy">
        <CopyButton text={() => JSON.stringify(value, null, 2)} label="Copy as JSON" />
      </div>
      <div
        ref={frame}
        role="tree"
        aria-label={label}
        aria-activedescendant={`${base}-${at}`}
        tabIndex={0}
        className="ui-json-frame"
        style={{ maxHeight }}
        onKeyDown={onKeyDown}
      >
        <div
          style={{ height: virtual.getTotalSize(), position: "relative", minWidth: "max-content" }}
          role="presentation"
        >
          {virtual.getVirtualItems().map((item) => {
            const row = rows[item.index];
            if (row === undefined) return null;
            return (
              // biome-ignore lint/a11y/useFocusableInteractive lint/a11y/useKeyWithClickEvents: the tree has the focus, and its keys do the same.
              <div
                key={row.path}
                id={`${base}-${item.index}`}
                role="treeitem"
                aria-level={row.level + 1}
                aria-setsize={row.siblings}
                aria-posinset={row.place}
                aria-expanded={row.isBranch ? row.isOpen : undefined}
                aria-selected={item.index === at}
                className={names("ui-json-row", item.index === at && "ui-json-current")}
                style={{ transform: `translateY(${item.start}px)`, paddingLeft: 4 + row.level * 16 }}
                onClick={() => {
                  setCurrent(row.path);
                  toggle(row);
                }}
              >
                <span className="ui-json-mark">
                  {row.isBranch && <Icon name={row.isOpen ? "chevron-down" : "chevron-right"} size={12} />}
                </span>
                {row.name !== null && (
                  <span className={row.isIndex ? "ui-json-index" : "ui-json-key"}>{row.name}: </span>
                )}
                <span className={`ui-json-${row.kind}`}>{row.text}</span>
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}
