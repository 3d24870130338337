/** The log of the run: every event there is, however many, the selected one in full. */
import { useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import {
  Button,
  counted,
  EmptyState,
  ErrorState,
  exact,
  IconButton,
  Input,
  Loading,
  names,
  plural,
  Splitter,
} from "@/ui";
import { useRunPage } from "../context";
import { askEvents } from "./ask";
import { EventDetail } from "./events/EventDetail";
import { type Envelope, placeOf, toneOf } from "./events/event";
import { EventPages } from "./events/pages";
import { type EventFilter, EventScan, isFiltering, NO_FILTER } from "./events/scan";
import { summaryOf } from "./events/summary";
import { TypeFilter } from "./events/TypeFilter";
import { offset, secondsOf } from "./offset";
import { type TallHandle, TallList } from "./TallList";
import "./panels.css";

const ROW = 24;
const MORE = 200;
const TYPING_MS = 300;

export default function Events() {
  const page = useRunPage();
  const { run, moment, marks } = page;
  const selected = page.event || null;
  const last = Math.max(moment?.last_seq ?? 0, marks?.last_seq ?? 0);
  const [filter, setFilter] = useState<EventFilter>(NO_FILTER);
  const text = useSettled(filter.text.trim());
  const pages = useMemo(() => new EventPages((request) => askEvents(run, request)), [run]);
  const { types, place } = filter;
  const scan = useMemo(() => {
    const wanted = { types, place, text };
    return isFiltering(wanted) ? new EventScan(wanted, (request) => askEvents(run, request)) : null;
  }, [run, types, place, text]);
  useSyncExternalStore(pages.subscribe, pages.version);
  pages.grown(last);
  const begin = marks?.first_ts ?? (moment === undefined ? null : moment.started_at);

  if (moment === undefined && marks === undefined) return <Loading rows={12} label="Loading the events" />;
  if (last === 0)
    return (
      <EmptyState icon="list" title="No events yet">
        The run has been submitted; nothing has happened yet.
      </EmptyState>
    );

  const chosen =
    selected === null ? undefined : (pages.get(selected) ?? scan?.get().found.find((one) => one.seq === selected));
  const list =
    scan === null ? (
      <AllEvents pages={pages} last={last} begin={begin} />
    ) : (
      <FoundEvents key={JSON.stringify(scan.filter)} scan={scan} last={last} begin={begin} />
    );
  return (
    <div className="rp rp-ev">
      <div className="rp-bar" role="toolbar" aria-label="Filter events">
        <TypeFilter
          types={marks?.types ?? {}}
          chosen={filter.types}
          onChoose={(now) => setFilter({ ...filter, types: now })}
        />
        <PlaceFilter value={filter.place} onChange={(now) => setFilter({ ...filter, place: now })} />
        <Input
          icon="search"
          type="search"
          className="ev-text"
          placeholder="Text in events"
          aria-label="Text in events"
          value={filter.text}
          onChange={(now) => setFilter({ ...filter, text: now.target.value })}
        />
        {isFiltering(filter) && (
          <IconButton icon="close" label="Clear the filter" size="small" onClick={() => setFilter(NO_FILTER)} />
        )}
        <span className="rp-bar-end quiet">{scan === null ? plural(last, "event") : null}</span>
      </div>
      {pages.error !== null ? (
        <ErrorState error={pages.error} title="These events could not be loaded" onRetry={() => pages.retry()} />
      ) : (
        // The list stays where it is when an event is selected, and keeps its place.
        <Splitter
          id="run-events"
          label="Size of the selected event"
          direction="column"
          initial={0.58}
          className={selected === null ? "ev-alone" : undefined}
        >
          {list}
          {selected !== null && (
            <EventDetail seq={selected} event={chosen} pages={pages} onClose={() => page.showEvent(0)} />
          )}
        </Splitter>
      )}
    </div>
  );
}

/** What is typed, once nobody has typed for a moment: every search reads through the log. */
function useSettled(text: string): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = window.setTimeout(() => setSettled(text), text === "" ? 0 : TYPING_MS);
    return () => window.clearTimeout(timer);
  }, [text]);
  return settled;
}

function PlaceFilter({ value, onChange }: { value: string; onChange: (place: string) => void }) {
  const { node, part, scope, graph } = useRunPage();
  const own = part ?? node;
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  return (
    <span className="ev-place">
      <Input
        list="ev-places"
        placeholder="Node or scope"
        aria-label="Only events of this node or scope"
        className="mono"
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          // What is chosen from the list comes at once; what is typed, when it is finished.
          if (event.target.value === "" || graph?.nodes.some((one) => one.id === event.target.value))
            onChange(event.target.value);
        }}
        onBlur={() => onChange(text.trim())}
        onKeyDown={(event) => event.key === "Enter" && onChange(text.trim())}
      />
      <datalist id="ev-places">
        {part !== null && <option value={part} />}
        {scope !== "" && <option value={scope} />}
        {graph?.nodes.slice(0, 500).map((one) => (
          <option key={one.id} value={one.id} />
        ))}
      </datalist>
      {own !== null && value !== own && (
        <Button size="small" look="quiet" onClick={() => onChange(own)} title={`Only events of ${own}`}>
          Only {own}
        </Button>
      )}
    </span>
  );
}

interface ListProps {
  last: number;
  begin: number | null;
}

/** Every event: row `n` is event `n + 1`. */
function AllEvents({ pages, last, begin }: ListProps & { pages: EventPages }) {
  const { at, event: selected, moment, showEvent, goTo } = useRunPage();
  const list = useRef<TallHandle>(null);
  const isLive = at === null && moment?.is_live === true;
  const [isAtEnd, setAtEnd] = useState(true);

  // A link to an event, a step of the slider: what is meant is brought into sight.
  useEffect(() => {
    if (selected !== null && selected > 0) list.current?.reveal(selected - 1, "centre");
  }, [selected]);
  useEffect(() => {
    if (at !== null) list.current?.reveal(Math.max(0, at - 1), "centre");
  }, [at]);

  return (
    <div className="ev-list">
      <Heads />
      <TallList
        handle={list}
        label="Events"
        count={last}
        row={ROW}
        active={(selected ?? 0) - 1}
        onActive={(index) => showEvent(index + 1)}
        onEnter={(index) => goTo(index + 1)}
        onSight={(first, end) => pages.want(first + 1, end)}
        onEnd={setAtEnd}
        isSticking={isLive}
        rowClass={(index) => momentClass(index + 1, at)}
        render={(index) => (
          <EventRow seq={index + 1} event={pages.get(index + 1)} begin={begin} isMoment={at === index + 1} />
        )}
      />
      {isLive && !isAtEnd && (
        <Button size="small" icon="last" className="rp-to-end" onClick={() => list.current?.end()}>
          Follow
        </Button>
      )}
      <Wanted pages={pages} last={last} isAtEnd={isAtEnd} />
    </div>
  );
}

/** A log that grows while its end is in sight has events that nobody has scrolled to. */
function Wanted({ pages, last, isAtEnd }: { pages: EventPages; last: number; isAtEnd: boolean }) {
  useEffect(() => {
    if (isAtEnd) pages.want(Math.max(1, last - 100), last);
  }, [pages, last, isAtEnd]);
  return null;
}

/** Those that match the filter, as far as the log has been looked through. */
function FoundEvents({ scan, last, begin }: ListProps & { scan: EventScan }) {
  const { at, event: selected, showEvent, goTo } = useRunPage();
  const { found, position, state, error } = useSyncExternalStore(scan.subscribe, scan.get);
  const list = useRef<TallHandle>(null);

  useEffect(() => {
    scan.until(MORE);
    return () => scan.stop();
  }, [scan]);
  useEffect(() => scan.grown(last), [scan, last]);

  const active = found.findIndex((one) => one.seq === selected);
  const share = last === 0 ? 1 : Math.min(1, position / last);
  return (
    <div className="ev-list">
      <div className="ev-scan" role="status">
        <progress className="ev-progress" max={1} value={state === "end" ? 1 : share} aria-label="Events searched" />
        <span>
          {counted(found.length)} found
          {state === "end"
            ? ` in ${plural(last, "event")}`
            : `, ${counted(position)} of ${plural(last, "event")} searched`}
        </span>
        {state === "running" && (
          <Button size="small" icon="stop" onClick={() => scan.stop()}>
            Stop
          </Button>
        )}
        {(state === "stopped" || state === "enough") && (
          <Button size="small" icon="play" onClick={() => scan.until(found.length + MORE, true)}>
            Continue
          </Button>
        )}
      </div>
      {state === "failed" ? (
        <ErrorState error={error} title="The search stopped" onRetry={() => scan.until(found.length + MORE, true)} />
      ) : found.length === 0 && state === "end" ? (
        <EmptyState icon="search" title="No event matches">
          {last === 1 ? "The only event was" : `All ${counted(last)} events were`} searched.
        </EmptyState>
      ) : found.length === 0 && state === "running" ? (
        <Loading rows={8} label="Looking for events" />
      ) : (
        <>
          <Heads />
          <TallList
            handle={list}
            label="Events found"
            count={found.length}
            row={ROW}
            active={active}
            onActive={(index) => {
              const one = found[index];
              if (one !== undefined) showEvent(one.seq);
            }}
            onEnter={(index) => {
              const one = found[index];
              if (one !== undefined) goTo(one.seq);
            }}
            onSight={(_, end) => end > found.length - 50 && scan.until(found.length + MORE)}
            rowClass={(index) => momentClass(found[index]?.seq ?? 0, at)}
            render={(index) => {
              const one = found[index];
              return one === undefined ? null : (
                <EventRow seq={one.seq} event={one} begin={begin} isMoment={at === one.seq} />
              );
            }}
          />
        </>
      )}
    </div>
  );
}

function momentClass(seq: number, at: number | null): string | undefined {
  if (at === null || seq < at) return undefined;
  return seq === at ? "ev-moment" : "ev-later";
}

function Heads() {
  return (
    <div className="ev-heads" aria-hidden="true">
      <span className="ev-seq">#</span>
      <span className="ev-time">Time</span>
      <span className="ev-type">Type</span>
      <span className="ev-where">Place</span>
      <span className="ev-summary">What happened</span>
    </div>
  );
}

interface RowProps {
  seq: number;
  event: Envelope | undefined;
  begin: number | null;
  isMoment: boolean;
}

function EventRow({ seq, event, begin, isMoment }: RowProps) {
  if (event === undefined) {
    return (
      <>
        <span className="ev-seq">{counted(seq)}</span>
        <span className="ev-waiting" />
      </>
    );
  }
  const when = new Date(event.ts);
  const place = placeOf(event);
  return (
    <>
      <span className="ev-seq">{counted(seq)}</span>
      <time className="ev-time" dateTime={event.ts} title={exact(when)}>
        {begin === null ? "" : offset(secondsOf(event.ts) - begin)}
      </time>
      <span className={names("ev-type", `ev-tone-${toneOf(event)}`)}>{event.event_type}</span>
      <span className="ev-where" title={place}>
        {place}
      </span>
      <span className="ev-summary">{summaryOf(event)}</span>
      {isMoment && <span className="ev-here">the moment shown</span>}
    </>
  );
}
