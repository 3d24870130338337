/**
 * A value as a tree: all of it, or its beginning, of which more is fetched as it is opened. Only rows in sight are in the page, so that
 * ten thousand entries are no burden. Arrows move and open, as in every tree.
 */
import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, useEffect, useId, useMemo, useRef, useState } from "react";
import { CopyButton } from "./CopyButton";
import { Icon } from "./Icon";
import { names } from "./names";
import { toastError } from "./Toast";
import { changesOf, extended, leavesOf, moreOf, type Part, partOf, pointer, type Row, rowsOf } from "./tree";

const ROW = 22;

interface ValueTreeProps {
  value: unknown;
  label: string;
  /** How many levels are open at first. */
  depth?: number;
  /** In pixels; what is longer scrolls. */
  maxHeight?: number;
  hasCopy?: boolean;
  /** The same value at the moment that was shown before: what differs is marked. */
  before?: unknown;
  /** Fetches what is behind a mark `{"$more": …}`, or the next page; without it all is there, and nothing is a mark. */
  load?: (path: string, offset: number) => Promise<Beginning>;
  /** With `load`: how many entries or characters there are in all. */
  total?: number | null;
}

interface Beginning {
  value: unknown;
  total: number | null;
}

export function ValueTree(props: ValueTreeProps) {
  const { value, label, depth = 2, maxHeight = 420, hasCopy = false, before, load, total = null } = props;
  const isWhole = load === undefined;
  const base = useId();
  const [parts, setParts] = useState<ReadonlyMap<string, Part>>(() => rooted(value, total));
  const [toggled, setToggled] = useState<ReadonlySet<string>>(new Set());
  const [current, setCurrent] = useState("");
  const frame = useRef<HTMLDivElement>(null);
  const loading = useRef(new Set<string>());
  useEffect(() => {
    loading.current.clear();
    setParts(rooted(value, total));
  }, [value, total]);

  const rows = useMemo(
    () => rowsOf(parts, toggled, depth, isWhole ? () => null : moreOf),
    [parts, toggled, depth, isWhole],
  );
  const changes = useMemo(
    () => (before === undefined ? new Set<string>() : changesOf(leavesOf(before), leavesOf(value))),
    [before, value],
  );
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => frame.current,
    estimateSize: () => ROW,
    overscan: 12,
  });
  const find = (path: string) => rows.findIndex((row) => row.path === path);
  // Of a row that is there no more, `Loading …` or `Show more`, the branch that it was in.
  const at = Math.max(0, find(current) === -1 ? find(current.replace(/#\w+$/, "")) : find(current));

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
    if (load === undefined || loading.current.has(key)) return;
    loading.current.add(key);
    try {
      const got = await load(path, offset);
      if (!loading.current.has(key)) return;
      setParts((now) =>
        new Map(now).set(path, extended(offset === 0 ? undefined : now.get(path), partOf(got.value, got.total))),
      );
      // The first of what has come stands where `Show more` was.
      const first = Array.isArray(got.value)
        ? String(offset)
        : typeof got.value === "object"
          ? Object.keys(got.value ?? {})[0]
          : undefined;
      if (offset > 0 && first !== undefined) setCurrent((now) => (now === `${path}#more` ? pointer(path, first) : now));
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
    <div className="ui-tree">
      {hasCopy && (
        <div className="ui-tree-copy">
          <CopyButton text={() => JSON.stringify(value, null, 2)} label="Copy as JSON" />
        </div>
      )}
      <div
        ref={frame}
        role="tree"
        aria-label={label}
        aria-activedescendant={`${base}-${at}`}
        tabIndex={0}
        className="ui-tree-frame"
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
                className={names(
                  "ui-tree-row",
                  item.index === at && "ui-tree-current",
                  changes.has(row.path) && !row.isOpen && "ui-tree-changed",
                )}
                style={{ transform: `translateY(${item.start}px)`, paddingLeft: 4 + row.level * 16 }}
                title={changes.has(row.path) && !row.isOpen ? "Changed since the moment before" : undefined}
                onClick={() => {
                  setCurrent(row.path);
                  act(row);
                }}
              >
                <span className="ui-tree-mark">
                  {row.isBranch && <Icon name={row.isOpen ? "chevron-down" : "chevron-right"} size={12} />}
                </span>
                {row.name !== null && (
                  <span className={row.isIndex ? "ui-tree-index" : "ui-tree-key"}>{row.name}: </span>
                )}
                <span className={`ui-tree-${row.kind}`}>{row.text}</span>
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}

function rooted(value: unknown, total: number | null): ReadonlyMap<string, Part> {
  return new Map([["", partOf(value, total)]]);
}
