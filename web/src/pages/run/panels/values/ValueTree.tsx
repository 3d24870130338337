/** A value as a tree; what is large is fetched as it is opened. Arrows move and open, as in every tree. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, useEffect, useId, useMemo, useRef, useState } from "react";
import { Icon, names, toastError } from "@/ui";
import type { Value } from "../ask";
import { changesOf, extended, leavesOf, type Part, partOf, type Row, rowsOf } from "./tree";

const ROW = 22;
const MOST_HEIGHT = 420;

interface ValueTreeProps {
  value: Value;
  /** The same value at the moment that was shown before. */
  before: Value | undefined;
  load: (path: string, offset: number) => Promise<Value>;
}

export function ValueTree({ value, before, load }: ValueTreeProps) {
  const base = useId();
  const [parts, setParts] = useState<ReadonlyMap<string, Part>>(() => rooted(value));
  const [toggled, setToggled] = useState<ReadonlySet<string>>(new Set());
  const [current, setCurrent] = useState("");
  const frame = useRef<HTMLDivElement>(null);
  const loading = useRef(new Set<string>());
  useEffect(() => {
    loading.current.clear();
    setParts(rooted(value));
  }, [value]);

  const rows = useMemo(() => rowsOf(parts, toggled, 2), [parts, toggled]);
  const changes = useMemo(
    () => (before === undefined ? new Set<string>() : changesOf(leavesOf(before.value), leavesOf(value.value))),
    [before, value],
  );
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

  // What is open and not there is fetched: also anew, at another moment.
  const missing = rows
    .filter((row) => row.isMissing && row.isOpen)
    .map((row) => row.path)
    .join("\n");
  // biome-ignore lint/correctness/useExhaustiveDependencies: `take` is of this rendering.
  useEffect(() => {
    for (const path of missing === "" ? [] : missing.split("\n")) void take(path, 0);
  }, [missing]);

  async function take(path: string, offset: number) {
    const key = `${path} ${offset}`;
    if (loading.current.has(key)) return;
    loading.current.add(key);
    try {
      const got = await load(path, offset);
      if (!loading.current.has(key)) return;
      setParts((now) =>
        new Map(now).set(path, extended(offset === 0 ? undefined : now.get(path), partOf(got.value, got.total))),
      );
    } catch (error) {
      toastError(error);
      setToggled((now) => new Set([...now].filter((one) => one !== path)));
    } finally {
      loading.current.delete(key);
    }
  }

  function act(row: Row) {
    if (row.kind === "more") {
      if (row.from !== null) void take(row.path.replace(/#more$/, ""), row.from);
      return;
    }
    if (!row.isBranch) return;
    const now = new Set(toggled);
    if (!now.delete(row.path)) now.add(row.path);
    setToggled(now);
  }

  function go(to: number) {
    const index = Math.min(rows.length - 1, Math.max(0, to));
    setCurrent(rows[index]?.path ?? "");
    virtual.scrollToIndex(index);
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
    else if (event.key === "ArrowRight") row.isBranch && !row.isOpen ? act(row) : go(at + 1);
    else if (event.key === "ArrowLeft") {
      if (row.isBranch && row.isOpen) act(row);
      else go(rows.findLastIndex((one, place) => place < at && one.level < row.level));
    } else if (event.key === "Enter" || event.key === " ") act(row);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  return (
    <div
      ref={frame}
      role="tree"
      aria-label={value.title}
      aria-activedescendant={`${base}-${at}`}
      tabIndex={0}
      className="ui-json-frame"
      style={{ maxHeight: MOST_HEIGHT }}
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
              className={names(
                "ui-json-row",
                item.index === at && "ui-json-current",
                changes.has(row.path) && !row.isOpen && "val-changed",
              )}
              style={{ transform: `translateY(${item.start}px)`, paddingLeft: 4 + row.level * 16 }}
              title={changes.has(row.path) && !row.isOpen ? "Not so at the moment before" : undefined}
              onClick={() => {
                setCurrent(row.path);
                act(row);
              }}
            >
              <span className="ui-json-mark">
                {row.isBranch && <Icon name={row.isOpen ? "chevron-down" : "chevron-right"} size={12} />}
              </span>
              {row.name !== null && <span className={row.isIndex ? "ui-json-index" : "ui-json-key"}>{row.name}: </span>}
              <span className={row.kind === "more" ? "val-more" : `ui-json-${row.kind}`}>{row.text}</span>
            </div>
          );
        })}
      </div>
    </div>
  );
}

function rooted(value: Value): ReadonlyMap<string, Part> {
  return new Map([["", partOf(value.value, value.total)]]);
}
