/** What the code of the run printed, line by line, as far as it had by the moment that is shown. */
import { useVirtualizer } from "@tanstack/react-virtual";
import {
  type KeyboardEvent,
  useCallback,
  useDeferredValue,
  useEffect,
  useMemo,
  useRef,
  useState,
  useSyncExternalStore,
} from "react";
import { useRun } from "@/live";
import {
  Button,
  CopyButton,
  counted,
  EmptyState,
  ErrorState,
  exact,
  IconButton,
  Input,
  Loading,
  names,
  plural,
} from "@/ui";
import { useRunPage } from "../context";
import { askLines } from "./ask";
import { plain } from "./logs/ansi";
import { LineText } from "./logs/LineText";
import { type Line, LineStore, MOST_LINES, occurrences, saidBy } from "./logs/lines";
import { offset } from "./offset";
import "./panels.css";

const ROW = 24;
/** In case the stream of news is cut. */
const POLL_MS = 5000;

export default function Logs() {
  const page = useRunPage();
  const { run, at, moment, marks, part } = page;
  const own = part ?? page.node;
  const [isAll, setAll] = useState(false);
  const node = isAll ? null : own;
  const until = at === null ? null : (moment?.ts ?? null);
  const { store, lines } = useLines(run, node, until);
  const shown = useMemo(() => (until === null ? lines.lines : saidBy(lines.lines, until)), [lines.lines, until]);

  const [text, setText] = useState("");
  const search = useDeferredValue(text.trim());
  const [isOnly, setOnly] = useState(false);
  const [isWrapped, setWrapped] = useWrap();
  const found = useMemo(() => matching(shown, search), [shown, search]);
  const listed =
    isOnly && search !== "" ? found.map((index) => shown[index]).filter((line) => line !== undefined) : shown;
  const [current, setCurrent] = useState(0);
  const goal = isOnly ? current : (found[current] ?? -1);
  const begin = marks?.first_ts ?? moment?.started_at ?? null;

  function onSearchKey(event: KeyboardEvent) {
    if (event.key !== "Enter" || found.length === 0) return;
    event.preventDefault();
    setCurrent((current + (event.shiftKey ? found.length - 1 : 1)) % found.length);
  }

  return (
    <div className="rp rp-log">
      <div className="rp-bar" role="toolbar" aria-label="Lines">
        {own !== null && (
          <span className="rp-segments">
            <Button size="small" aria-pressed={!isAll} onClick={() => setAll(false)} className="ellipsis" title={own}>
              {own}
            </Button>
            <Button size="small" aria-pressed={isAll} onClick={() => setAll(true)}>
              All nodes
            </Button>
          </span>
        )}
        <Input
          icon="search"
          type="search"
          className="ev-text"
          placeholder="Search lines"
          aria-label="Search lines"
          value={text}
          onChange={(event) => {
            setText(event.target.value);
            setCurrent(0);
          }}
          onKeyDown={onSearchKey}
        />
        {search !== "" && (
          <>
            <span className="quiet" role="status">
              {found.length === 0
                ? "none"
                : isOnly
                  ? counted(found.length)
                  : `${counted(current + 1)} of ${counted(found.length)}`}
            </span>
            <IconButton
              icon="arrow-up"
              label="Previous"
              keys="Shift Enter"
              size="small"
              disabled={found.length === 0}
              onClick={() => setCurrent((current + found.length - 1) % found.length)}
            />
            <IconButton
              icon="arrow-down"
              label="Next"
              keys="Enter"
              size="small"
              disabled={found.length === 0}
              onClick={() => setCurrent((current + 1) % found.length)}
            />
            <IconButton
              icon="filter"
              label="Only lines that match"
              isPressed={isOnly}
              size="small"
              onClick={() => setOnly(!isOnly)}
            />
          </>
        )}
        <span className="rp-bar-end">
          <span className="quiet">{lines.isReady || lines.lines.length > 0 ? plural(shown.length, "line") : ""}</span>
          <IconButton
            icon="lines"
            label="Wrap long lines"
            isPressed={isWrapped}
            size="small"
            onClick={() => setWrapped(!isWrapped)}
          />
          <CopyButton text={() => listed.map((line) => plain(line.line)).join("\n")} label="Copy the lines shown" />
        </span>
      </div>
      {lines.error !== null && (
        <ErrorState error={lines.error} title="The lines could not be loaded" onRetry={() => void store.more()} />
      )}
      {lines.cut > 0 && (
        <p className="rp-note">
          {lines.cut === 1 ? "The first line is" : `The first ${counted(lines.cut)} lines are`} not shown here;{" "}
          <code>penstock logs {run}</code> prints all of them.
        </p>
      )}
      {lines.error === null && listed.length === 0 ? (
        <NoLines
          isLoading={!lines.isReady}
          node={node}
          search={isOnly ? search : ""}
          isPast={at !== null && lines.lines.length > 0}
          onAll={() => setAll(true)}
        />
      ) : (
        <LineList
          lines={listed}
          search={search}
          goal={search === "" ? -1 : goal}
          begin={begin}
          isWrapped={isWrapped}
          withNode={node === null}
          isSticking={at === null && (moment?.is_live ?? false)}
        />
      )}
    </div>
  );
}

interface NoLinesProps {
  isLoading: boolean;
  node: string | null;
  search: string;
  isPast: boolean;
  onAll: () => void;
}

function NoLines({ isLoading, node, search, isPast, onAll }: NoLinesProps) {
  if (isLoading) return <Loading rows={10} label="Loading the lines" />;
  if (search !== "") return <EmptyState icon="search" title="No line matches" />;
  if (isPast) return <EmptyState icon="lines" title="Nothing had been printed by this moment" />;
  if (node === null)
    return (
      <EmptyState icon="lines" title="Nothing was printed">
        What tools and components print appears here, as it is printed.
      </EmptyState>
    );
  return (
    <EmptyState
      icon="lines"
      title={`${node} printed nothing`}
      actions={<Button onClick={onAll}>Show all nodes</Button>}
    />
  );
}

interface ListProps {
  lines: readonly Line[];
  search: string;
  /** The line to bring into sight; -1 for none. */
  goal: number;
  begin: number | null;
  isWrapped: boolean;
  withNode: boolean;
  isSticking: boolean;
}

function LineList({ lines, search, goal, begin, isWrapped, withNode, isSticking }: ListProps) {
  const page = useRunPage();
  const frame = useRef<HTMLDivElement>(null);
  const [isAtEnd, setAtEnd] = useState(true);
  const virtual = useVirtualizer({
    count: lines.length,
    getScrollElement: () => frame.current,
    estimateSize: () => ROW,
    overscan: 20,
    getItemKey: (index) => lines[index]?.number ?? index,
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: heights change with the wrapping.
  useEffect(() => virtual.measure(), [virtual, isWrapped]);
  useEffect(() => {
    if (goal >= 0) virtual.scrollToIndex(goal, { align: "center" });
  }, [virtual, goal]);
  const wasAtEnd = useRef(true);
  const look = useCallback(() => {
    const box = frame.current;
    if (box === null) return;
    const ends = box.scrollTop + box.clientHeight >= box.scrollHeight - ROW;
    wasAtEnd.current = ends;
    setAtEnd(ends);
  }, []);
  useEffect(() => {
    if (isSticking && wasAtEnd.current && lines.length > 0) virtual.scrollToIndex(lines.length - 1, { align: "end" });
    else look();
  }, [virtual, lines.length, isSticking, look]);

  return (
    <div className="log-list">
      <section
        ref={frame}
        className={names("log-frame", isWrapped && "log-wrapped")}
        aria-label="Lines"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard.
        tabIndex={0}
        onScroll={look}
      >
        <div className="log-sizer" style={{ height: virtual.getTotalSize() }}>
          {virtual.getVirtualItems().map((item) => {
            const line = lines[item.index];
            if (line === undefined) return null;
            return (
              <div
                key={item.key}
                ref={virtual.measureElement}
                data-index={item.index}
                className={names("log-line", item.index === goal && "log-current")}
                style={{ transform: `translateY(${item.start}px)` }}
              >
                <time
                  className="log-time"
                  dateTime={new Date(line.ts * 1000).toISOString()}
                  title={exact(new Date(line.ts * 1000))}
                >
                  {begin === null ? "" : offset(line.ts - begin)}
                </time>
                {withNode &&
                  (line.node === null ? (
                    <span className="log-node quiet">{line.scope}</span>
                  ) : (
                    <button
                      type="button"
                      className="log-node rp-link"
                      title={line.task_run_id ?? line.scope}
                      onClick={() => page.select(line.node)}
                    >
                      {line.node}
                    </button>
                  ))}
                <span className="log-text">
                  <LineText
                    line={line.line}
                    search={search !== "" && occurrences(line.line, search).length > 0 ? search : ""}
                  />
                </span>
              </div>
            );
          })}
        </div>
      </section>
      {!isAtEnd && (
        <Button
          size="small"
          icon="last"
          className="rp-to-end"
          onClick={() => virtual.scrollToIndex(lines.length - 1, { align: "end" })}
        >
          To the end
        </Button>
      )}
    </div>
  );
}

/** The lines of a node or of all, kept up with while the run goes. */
function useLines(run: string, node: string | null, until: number | null) {
  const { moment } = useRunPage();
  const printed = useRun(moment?.execution_id ?? run)?.lines ?? 0;
  // Of a log too long to be kept, what came before a moment has to be asked for.
  const [bound, setBound] = useState<number | null>(null);
  const begin = useRef(0);
  begin.current = node === null && bound === null ? Math.max(0, printed - MOST_LINES) : 0;
  const store = useMemo(
    () => new LineStore((request) => askLines(run, { ...request, node, until: bound }), begin.current),
    [run, node, bound],
  );
  const lines = useSyncExternalStore(store.subscribe, store.get);
  const isLive = moment?.is_live === true;
  const last = moment?.last_seq;

  // biome-ignore lint/correctness/useExhaustiveDependencies: whatever has happened, lines may have come with it.
  useEffect(() => {
    void store.more();
  }, [store, printed, last]);
  useEffect(() => {
    if (!isLive) return;
    const timer = window.setInterval(() => void store.more(), POLL_MS);
    return () => window.clearInterval(timer);
  }, [store, isLive]);
  useEffect(() => () => store.stop(), [store]);
  useEffect(() => {
    const first = lines.lines[0];
    if (until === null) setBound(null);
    else if (bound === null ? lines.cut > 0 && first !== undefined && first.ts > until : until !== bound)
      setBound(until);
  }, [until, bound, lines]);
  return { store, lines };
}

function matching(lines: readonly Line[], search: string): number[] {
  if (search === "") return [];
  const found: number[] = [];
  lines.forEach((line, index) => {
    if (occurrences(plain(line.line), search).length > 0) found.push(index);
  });
  return found;
}

const WRAP = "penstock.logs.wrap";

function useWrap(): [boolean, (isWrapped: boolean) => void] {
  const [isWrapped, setWrapped] = useState(() => {
    try {
      return localStorage.getItem(WRAP) === "1";
    } catch {
      return false; // A browser may forbid storage.
    }
  });
  return [
    isWrapped,
    (now) => {
      setWrapped(now);
      try {
        localStorage.setItem(WRAP, now ? "1" : "0");
      } catch {
        // Then it holds until the page is loaded again.
      }
    },
  ];
}
