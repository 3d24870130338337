/** When things ran: a lane for each node, or for each worker. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useVirtualizer } from "@tanstack/react-virtual";
import {
  type KeyboardEvent,
  memo,
  type PointerEvent,
  type RefObject,
  useCallback,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import { answered, api } from "@/api/client";
import { Checkbox, counted, EmptyState, ErrorState, IconButton, Loading, lasting, names } from "@/ui";
import { useServerNow } from "../clock";
import { useRunPage } from "../context";
import { type Bar, type Drawn, drawnBars, type Lane, nodeOf, type TimelineData, toneOf } from "./bars";
import { isSame, lengthOf, offset, panned, type Range, ticks, tsOf, xOf, zoomed } from "./scale";
import { barName, barTip } from "./wording";
import "./timeline.css";

const LANE = 38;
const NAMES = 168;
/** What is asked for is rounded to so many pixels, so that a pane that is made wider does not ask for each pixel. */
const ROUND = 100;
/** A label of the axis that has less room than this to its right stands to the left of its line. */
const LABEL = 44;
/** A live run is asked for at most so often. */
const LIVE_MS = 1000;

export function Timeline() {
  const page = useRunPage();
  const { run, scope, at, moment } = page;
  const [isByWorker, setByWorker] = useState(false);
  const [isCritical, setCritical] = useState(true);
  const [zoom, setZoom] = useState<Range | null>(null);
  const frame = useRef<HTMLDivElement>(null);
  const width = useWidth(frame) - NAMES;
  const isLive = moment?.is_live ?? false;
  const tick = useTick(isLive);
  const pixels = Math.min(5000, Math.max(100, Math.ceil(width / ROUND) * ROUND));
  // A long run is read by the server piece by piece: the timeline follows in tenths.
  const tenth = moment === undefined ? 0 : Math.floor((moment.folded_to / Math.max(1, moment.last_seq)) * 10);
  const { data, error, refetch, isPlaceholderData } = useQuery({
    queryKey: [
      "run",
      run,
      "timeline",
      scope,
      at,
      isByWorker,
      zoom,
      pixels,
      at === null ? (isLive ? tick : `${moment?.last_seq} ${tenth}`) : tenth,
    ],
    queryFn: ({ signal }): Promise<TimelineData> =>
      answered(
        api.GET("/api/executions/{run}/timeline", {
          params: {
            path: { run },
            query: {
              scope,
              pixels,
              workers: isByWorker,
              ...(at !== null && { at }),
              ...(zoom !== null && { since: zoom.since, until: zoom.until }),
            },
          },
          signal,
        }),
      ),
    enabled: width > 0 && moment !== undefined,
    placeholderData: keepPreviousData,
    // A live run makes one a second.
    gcTime: 5_000,
  });
  const now = useServerNow(isLive ? 1000 : null, moment?.ts ?? 0);

  const whole = useMemo((): Range => {
    const since = moment?.started_at ?? 0;
    const until = Math.max(since + 0.001, isLive ? now : (moment?.ended_at ?? moment?.ts ?? since));
    return { since, until };
  }, [moment?.started_at, moment?.ended_at, moment?.ts, isLive, now]);
  const range = zoom ?? whole;

  const change = useCallback((next: Range) => setZoom(isSame(next, whole) ? null : next), [whole]);
  if (error !== null && data === undefined) return <ErrorState error={error} onRetry={() => void refetch()} />;
  return (
    <div className="run-timeline" ref={frame}>
      <div className="run-timeline-bar">
        <Checkbox label="By worker" checked={isByWorker} onChange={(event) => setByWorker(event.target.checked)} />
        <Checkbox
          label={
            isByWorker || data?.critical_ms == null ? "Critical path" : `Critical path, ${lasting(data.critical_ms)}`
          }
          checked={isCritical}
          disabled={isByWorker}
          onChange={(event) => setCritical(event.target.checked)}
        />
        <Legend />
        <div className="run-timeline-zoom">
          <IconButton
            size="small"
            icon="zoom-out"
            label="Zoom out"
            keys="-"
            disabled={zoom === null}
            onClick={() => change(zoomed(range, whole, (range.since + range.until) / 2, 2))}
          />
          <IconButton
            size="small"
            icon="zoom-in"
            label="Zoom in"
            keys="+"
            onClick={() => change(zoomed(range, whole, (range.since + range.until) / 2, 0.5))}
          />
          <IconButton
            size="small"
            icon="fit"
            label="The whole run"
            keys="0"
            disabled={zoom === null}
            onClick={() => setZoom(null)}
          />
        </div>
      </div>
      {data === undefined || width <= 0 ? (
        <Loading label="Loading the timeline" />
      ) : data.lanes.length === 0 ? (
        <EmptyState
          icon="timeline"
          title={isByWorker ? "No worker has had anything to do by this moment" : "Nothing has started by this moment"}
        />
      ) : (
        <Lanes
          data={data}
          range={range}
          whole={whole}
          width={width}
          now={isLive ? now : null}
          isCritical={isCritical && !isByWorker}
          isOld={isPlaceholderData}
          onRange={change}
        />
      )}
    </div>
  );
}

/** Counts up while a run is live. */
function useTick(isLive: boolean): number {
  const [tick, setTick] = useState(0);
  useEffect(() => {
    if (!isLive) return;
    const timer = window.setInterval(() => setTick((before) => before + 1), LIVE_MS);
    return () => window.clearInterval(timer);
  }, [isLive]);
  return tick;
}

function useWidth(frame: RefObject<HTMLDivElement | null>): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const element = frame.current;
    if (element === null) return;
    const look = () => setWidth(element.clientWidth - 12);
    look();
    const observer = new ResizeObserver(look);
    observer.observe(element);
    return () => observer.disconnect();
  }, [frame]);
  return width;
}

interface LanesProps {
  data: TimelineData;
  range: Range;
  whole: Range;
  width: number;
  now: number | null;
  isCritical: boolean;
  isOld: boolean;
  onRange: (range: Range) => void;
}

interface Hovered {
  bar: Bar;
  lane: Lane;
  x: number;
  y: number;
}

function Lanes({ data, range, whole, width, now, isCritical, isOld, onRange }: LanesProps) {
  const page = useRunPage();
  const { moment } = page;
  const scroll = useRef<HTMLDivElement>(null);
  const [hovered, setHovered] = useState<Hovered | null>(null);
  const [focus, setFocus] = useState<{ lane: number; bar: number }>({ lane: 0, bar: -1 });
  const lanes = useVirtualizer({
    count: data.lanes.length,
    getScrollElement: () => scroll.current,
    estimateSize: () => LANE,
    overscan: 6,
  });
  const critical = useMemo(() => new Set(data.critical), [data.critical]);
  const start = moment?.started_at ?? range.since;
  useWheel(scroll, range, whole, width, onRange);
  const drag = useDrag(range, whole, width, onRange);

  const choose = (lane: Lane, bar: Bar | null) => {
    if (lane.kind !== "worker") page.select(lane.id, bar !== null && bar.count === 1 ? bar.scope : null);
    else if (bar?.scope != null) page.select(nodeOf(bar), bar.scope);
  };

  function onKeyDown(event: KeyboardEvent) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const lane = data.lanes[focus.lane];
    const bars = lane === undefined ? [] : drawnBars(lane.bars, range, width, now ?? range.until);
    const move = (next: { lane: number; bar: number }) => {
      const to = { lane: Math.min(data.lanes.length - 1, Math.max(0, next.lane)), bar: next.bar };
      setFocus(to);
      lanes.scrollToIndex(to.lane);
      requestAnimationFrame(() =>
        scroll.current?.querySelector<HTMLElement>(`[data-lane="${to.lane}"]`)?.focus({ preventScroll: true }),
      );
    };
    const middle = (range.since + range.until) / 2;
    const acts: Record<string, () => void> = {
      ArrowDown: () => move({ lane: focus.lane + 1, bar: -1 }),
      ArrowUp: () => move({ lane: focus.lane - 1, bar: -1 }),
      ArrowRight: () => move({ lane: focus.lane, bar: Math.min(bars.length - 1, focus.bar + 1) }),
      ArrowLeft: () => move({ lane: focus.lane, bar: Math.max(-1, focus.bar - 1) }),
      Home: () => move({ lane: 0, bar: -1 }),
      End: () => move({ lane: data.lanes.length - 1, bar: -1 }),
      Enter: () => lane !== undefined && choose(lane, bars[focus.bar]?.bar ?? null),
      " ": () => lane !== undefined && choose(lane, bars[focus.bar]?.bar ?? null),
      "+": () => onRange(zoomed(range, whole, middle, 0.5)),
      "=": () => onRange(zoomed(range, whole, middle, 0.5)),
      "-": () => onRange(zoomed(range, whole, middle, 2)),
      "0": () => onRange(whole),
      PageDown: () => onRange(panned(range, whole, lengthOf(range) / 2)),
      PageUp: () => onRange(panned(range, whole, -lengthOf(range) / 2)),
    };
    const act = acts[event.key];
    if (act === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  }

  /** One listener for all bars: there may be thousands. */
  function onHover(event: PointerEvent<HTMLDivElement>) {
    const element = (event.target as HTMLElement).closest<HTMLElement>("[data-bar]");
    const lane = data.lanes[Number(element?.dataset.of)];
    const drawn =
      lane === undefined
        ? undefined
        : drawnBars(lane.bars, range, width, now ?? range.until)[Number(element?.dataset.bar)];
    if (element === null || lane === undefined || drawn === undefined) {
      setHovered(null);
      return;
    }
    const box = scroll.current?.getBoundingClientRect();
    setHovered({ bar: drawn.bar, lane, x: event.clientX - (box?.left ?? 0), y: event.clientY - (box?.top ?? 0) });
  }

  const momentX = page.at === null || moment === undefined ? null : xOf(moment.ts, range, width);
  const nowX = now === null ? null : xOf(now, range, width);
  const inside = (x: number | null) => x !== null && x >= 0 && x <= width + 1;
  return (
    <>
      <Axis range={range} start={start} width={width} />
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms. */}
      <div
        ref={scroll}
        role="group"
        aria-label="Timeline: up and down go from lane to lane, left and right from bar to bar, Enter selects"
        className={names("run-lanes", isOld && "run-lanes-old")}
        onKeyDown={onKeyDown}
        onPointerMove={onHover}
        onPointerLeave={() => setHovered(null)}
        {...drag}
      >
        <div className="run-lanes-inner" style={{ height: lanes.getTotalSize() }}>
          <Grid range={range} start={start} width={width} />
          <ul>
            {lanes.getVirtualItems().map((row) => {
              const lane = data.lanes[row.index];
              if (lane === undefined) return null;
              return (
                <LaneRow
                  key={lane.id}
                  lane={lane}
                  index={row.index}
                  top={row.start}
                  range={range}
                  width={width}
                  now={now ?? range.until}
                  isCritical={isCritical && critical.has(lane.id)}
                  isSelected={lane.kind !== "worker" && page.node === lane.id}
                  part={page.part}
                  focus={focus.lane === row.index ? focus.bar : null}
                  isFirst={focus.lane === row.index}
                  onFocus={setFocus}
                  choose={choose}
                />
              );
            })}
          </ul>
          {inside(momentX) && <div className="run-line run-line-moment" style={{ left: NAMES + (momentX ?? 0) }} />}
          {inside(nowX) && <div className="run-line run-line-now" style={{ left: NAMES + (nowX ?? 0) }} />}
        </div>
        {hovered !== null && <Tip hovered={hovered} start={start} limit={width + NAMES} now={now ?? range.until} />}
      </div>
    </>
  );
}

interface LaneRowProps {
  lane: Lane;
  index: number;
  top: number;
  range: Range;
  width: number;
  now: number;
  isCritical: boolean;
  isSelected: boolean;
  part: string | null;
  /** The bar that keys have come to; -1 is the lane itself, null is another lane. */
  focus: number | null;
  isFirst: boolean;
  onFocus: (focus: { lane: number; bar: number }) => void;
  choose: (lane: Lane, bar: Bar | null) => void;
}

const LaneRow = memo(function LaneRow(props: LaneRowProps) {
  const { lane, index, top, range, width, now, isCritical, isSelected, part, focus, isFirst, onFocus, choose } = props;
  const drawn = useMemo(() => drawnBars(lane.bars, range, width, now), [lane, range, width, now]);
  const at = focus === null || focus < 0 ? undefined : drawn[focus];
  const said =
    at === undefined
      ? `${lane.title}, ${drawn.length} ${drawn.length === 1 ? "bar" : "bars"}`
      : barName(lane, at.bar, now);
  return (
    <li
      className={names("run-lane", isSelected && "run-lane-selected", isCritical && "run-lane-critical")}
      style={{ top, height: LANE }}
    >
      <button
        type="button"
        className="run-lane-name"
        data-lane={index}
        tabIndex={isFirst ? 0 : -1}
        aria-label={said}
        aria-pressed={isSelected}
        title={lane.title}
        onFocus={() => focus === null && onFocus({ lane: index, bar: -1 })}
        onClick={() => choose(lane, null)}
      >
        <span className="ellipsis">{lane.title}</span>
        {isCritical && <span className="run-lane-sign" title="On the critical path" />}
      </button>
      <div className="run-lane-bars" style={{ width }}>
        {drawn.map((one, bar) => (
          <BarView
            // biome-ignore lint/suspicious/noArrayIndexKey: bars have no name of their own, and keep their order.
            key={bar}
            drawn={one}
            bar={bar}
            lane={index}
            isFocused={focus === bar}
            isPart={part !== null && one.bar.scope === part && one.bar.count === 1}
            onClick={() => choose(lane, one.bar)}
          />
        ))}
      </div>
    </li>
  );
});

interface BarViewProps {
  drawn: Drawn;
  bar: number;
  lane: number;
  isFocused: boolean;
  isPart: boolean;
  onClick: () => void;
}

function BarView({ drawn, bar, lane, isFocused, isPart, onClick }: BarViewProps) {
  const { x, width, row } = drawn;
  const { kind, until, count, failed, attempt, is_critical } = drawn.bar;
  const text = count > 1 ? `× ${counted(count)}` : kind === "attempt" && attempt != null ? `#${attempt}` : "";
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the lane is the control, and keys go from bar to bar in it.
    // biome-ignore lint/a11y/useKeyWithClickEvents: see above.
    <div
      className={names(
        "run-bar",
        `run-bar-${kind}`,
        `ui-ink-${toneOf(drawn.bar)}`,
        row === 1 && "run-bar-below",
        row === 2 && "run-bar-lowest",
        until === null && "run-bar-open",
        is_critical && "run-bar-critical",
        isFocused && "run-bar-focused",
        isPart && "run-bar-part",
      )}
      data-bar={bar}
      data-of={lane}
      style={{ left: x, width }}
      onClick={onClick}
    >
      {failed > 0 && count > 1 && <span className="run-bar-failed" />}
      {width > 26 && row === 0 && text !== "" && <span className="run-bar-text">{text}</span>}
    </div>
  );
}

function Axis({ range, start, width }: { range: Range; start: number; width: number }) {
  return (
    <div className="run-axis" aria-hidden="true" style={{ paddingLeft: NAMES }}>
      {ticks(range, start, width).map((tick) => (
        <span
          key={tick.after}
          className={names("run-tick", width - tick.x < LABEL && "run-tick-last")}
          style={{ left: NAMES + tick.x }}
        >
          {tick.label}
        </span>
      ))}
    </div>
  );
}

function Grid({ range, start, width }: { range: Range; start: number; width: number }) {
  return (
    <div className="run-grid" aria-hidden="true">
      {ticks(range, start, width).map((tick) => (
        <span key={tick.after} style={{ left: NAMES + tick.x }} />
      ))}
    </div>
  );
}

function Tip({ hovered, start, limit, now }: { hovered: Hovered; start: number; limit: number; now: number }) {
  const { bar, lane, x, y } = hovered;
  const isRight = x > limit - 260;
  return (
    <div
      className="run-tip"
      role="presentation"
      style={{ top: y + 14, ...(isRight ? { right: limit - x + 18 } : { left: x + 10 }) }}
    >
      <strong>{lane.title}</strong>
      {barTip(bar, now).map((line) => (
        <span key={line}>{line}</span>
      ))}
      <span className="quiet">
        +{offset(bar.since - start, 0.001)}
        {bar.until !== null && ` to +${offset(bar.until - start, 0.001)}`}
      </span>
    </div>
  );
}

function Legend() {
  return (
    <ul className="run-legend" aria-label="Legend">
      <li>
        <span className="run-bar run-bar-run ui-ink-ok" /> run
      </li>
      <li>
        <span className="run-bar run-bar-attempt ui-ink-ok" /> attempt
      </li>
      <li>
        <span className="run-bar run-bar-wait ui-ink-waiting" /> wait
      </li>
      <li>
        <span className="run-bar run-bar-lease ui-ink-ok" /> lease
      </li>
    </ul>
  );
}

/** The wheel zooms with a modifier or over the axis, and pans sideways. React's own listener could not keep the page from scrolling. */
function useWheel(
  scroll: RefObject<HTMLDivElement | null>,
  range: Range,
  whole: Range,
  width: number,
  onRange: (range: Range) => void,
) {
  const now = useRef({ range, whole, width, onRange });
  useEffect(() => {
    now.current = { range, whole, width, onRange };
  });
  useEffect(() => {
    const element = scroll.current;
    if (element === null) return;
    const onWheel = (event: WheelEvent) => {
      const { range: at, whole: all, width: wide, onRange: set } = now.current;
      if (event.ctrlKey || event.metaKey || event.shiftKey) {
        event.preventDefault();
        const x = event.clientX - element.getBoundingClientRect().left - NAMES;
        const turned = event.deltaY === 0 ? event.deltaX : event.deltaY;
        set(zoomed(at, all, tsOf(Math.min(wide, Math.max(0, x)), at, wide), turned > 0 ? 1.25 : 0.8));
      } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        event.preventDefault();
        set(panned(at, all, (event.deltaX / wide) * lengthOf(at)));
      }
    };
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => element.removeEventListener("wheel", onWheel);
  }, [scroll]);
}

/** Dragging moves a range that is zoomed into. */
function useDrag(range: Range, whole: Range, width: number, onRange: (range: Range) => void) {
  const from = useRef<{ x: number; range: Range } | null>(null);
  return {
    onPointerDown: (event: PointerEvent<HTMLDivElement>) => {
      const isOnBar = (event.target as HTMLElement).closest("[data-bar], button") !== null;
      from.current = event.button === 0 && !isOnBar ? { x: event.clientX, range } : null;
    },
    onPointerMoveCapture: (event: PointerEvent<HTMLDivElement>) => {
      if (from.current === null || event.buttons !== 1) return;
      onRange(panned(from.current.range, whole, ((from.current.x - event.clientX) / width) * lengthOf(range)));
    },
    onPointerUp: () => {
      from.current = null;
    },
  };
}
