/** The time slider: any moment of the run, by the number of its event. */
import { type KeyboardEvent, memo, type PointerEvent, useLayoutEffect, useMemo, useRef, useState } from "react";
import { useConnection } from "@/api/connection";
import {
  Button,
  clock,
  counted,
  exact,
  Icon,
  IconButton,
  type IconName,
  names,
  plural,
  Select,
  type State,
  Tooltip,
  useShortcuts,
} from "@/ui";
import { type Marks, type Moment, useRunPage } from "../context";
import { offset } from "../timeline/scale";
import { PACES, paceOf } from "./play";
import { type Cluster, clustered, keyed, type Mark, neighbour, seqAt, shareOf, timeNear } from "./scale";
import { usePlay } from "./usePlay";
import "./slider.css";

const NO_MARKS: readonly Mark[] = [];

interface SliderProps {
  /** The number of the last event. */
  last: number;
  /** The run goes on, whatever moment is shown. */
  isGoing: boolean;
  onDrag: (seq: number | null) => void;
}

export function TimeSlider({ last, isGoing, onDrag }: SliderProps) {
  const { run, at, moment, marks } = useRunPage();
  const seq = Math.min(at ?? last, last);
  // The end of the run is what it is followed to.
  const goTo = (to: number) => onDrag(to >= last ? null : Math.max(1, to));
  const [paceId, setPaceId] = useState<string | null>(null);
  const play = usePlay({ run, last, seq, isAtEnd: at === null, pace: paceOf(paceId), goTo });
  const go = (to: number) => {
    play.stop();
    goTo(to);
  };
  const all = marks?.marks ?? NO_MARKS;
  const previous = neighbour(all, seq, "previous");
  const next = neighbour(all, seq, "next");
  const firstError = marks?.first_error ?? null;

  useShortcuts("Time", [
    { keys: ["["], label: "One event back", run: () => go(seq - 1) },
    { keys: ["]"], label: "One event forward", run: () => go(seq + 1) },
    { keys: ["{"], label: "Previous mark", run: () => previous !== null && go(previous.seq) },
    { keys: ["}"], label: "Next mark", run: () => next !== null && go(next.seq) },
    { keys: ["k"], label: "Play or pause", run: play.toggle },
    {
      keys: ["e"],
      label: "First failure",
      run: () => firstError !== null && go(firstError),
      isDisabled: firstError === null,
    },
    { keys: ["."], label: "Latest event", run: () => go(last) },
  ]);

  if (last === 0) {
    return (
      <footer className="run-time run-time-empty">
        <Icon name="waiting" />{" "}
        <span className="quiet">The run has no events yet. They appear here as they arrive.</span>
      </footer>
    );
  }
  return (
    <section className="run-time" aria-label="Time">
      <Track
        read={moment === undefined ? 1 : moment.folded_to / Math.max(1, moment.last_seq)}
        seq={seq}
        last={last}
        marks={all}
        isLive={at === null}
        text={spoken(seq, last, moment, marks)}
        go={go}
      />
      <div className="run-time-row">
        <div className="run-time-buttons">
          <IconButton
            size="small"
            icon="error"
            label={firstError === null ? "Nothing failed" : "First failure"}
            keys="e"
            disabled={firstError === null}
            onClick={() => firstError !== null && go(firstError)}
          />
          <IconButton
            size="small"
            icon="first"
            label="Previous mark"
            keys="{"
            disabled={previous === null}
            onClick={() => previous !== null && go(previous.seq)}
          />
          <IconButton
            size="small"
            icon="step-back"
            label="One event back"
            keys="["
            disabled={seq <= 1}
            onClick={() => go(seq - 1)}
          />
          <IconButton
            size="small"
            icon={play.isPlaying ? "pause" : "play"}
            label={play.isPlaying ? "Pause" : "Play"}
            keys="k"
            onClick={play.toggle}
          />
          <IconButton
            size="small"
            icon="step-forward"
            label="One event forward"
            keys="]"
            disabled={at === null}
            onClick={() => go(seq + 1)}
          />
          <IconButton
            size="small"
            icon="last"
            label="Next mark"
            keys="}"
            disabled={next === null}
            onClick={() => next !== null && go(next.seq)}
          />
          <Select
            aria-label="Playback speed"
            className="run-time-pace"
            value={paceOf(paceId).id}
            onChange={(event) => setPaceId(event.target.value)}
            choices={PACES.map((pace) => ({ value: pace.id, label: pace.label }))}
          />
        </div>
        <ReadOut seq={seq} last={last} moment={moment} marks={marks} />
        <Live at={at} last={last} isGoing={isGoing} goLive={() => go(last)} />
      </div>
    </section>
  );
}

function spoken(seq: number, last: number, moment: Moment | undefined, marks: Marks | undefined): string {
  const time = whenOf(seq, moment, marks);
  const after =
    time === null || moment === undefined ? "" : `, ${offset(time.ts - moment.started_at, 0.001)} after the start`;
  return `event ${counted(seq)} of ${counted(last)}${after}`;
}

function whenOf(seq: number, moment: Moment | undefined, marks: Marks | undefined) {
  const known = [
    ...(marks?.marks ?? []),
    ...(marks === undefined
      ? []
      : [
          { seq: 1, ts: marks.first_ts },
          { seq: marks.folded_to, ts: marks.last_ts },
        ]),
    ...(moment === undefined ? [] : [{ seq: moment.seq, ts: moment.ts }]),
  ];
  return timeNear(seq, known);
}

function ReadOut({
  seq,
  last,
  moment,
  marks,
}: {
  seq: number;
  last: number;
  moment: Moment | undefined;
  marks: Marks | undefined;
}) {
  const known = whenOf(seq, moment, marks);
  const reading =
    moment !== undefined && moment.folded_to < Math.min(seq, moment.last_seq)
      ? moment.folded_to / Math.max(1, seq)
      : null;
  // What the server has not read yet it knows no time of.
  const time = reading === null || known?.isExact ? known : null;
  return (
    <div className="run-time-read" aria-hidden="true">
      <span>
        event <strong>{counted(seq)}</strong> of {counted(last)}
      </span>
      {time !== null && (
        <span
          title={exact(new Date(time.ts * 1000))}
          className={names("run-time-clock", !time.isExact && "run-time-near")}
        >
          {time.isExact ? "" : "≈ "}
          {clock(new Date(time.ts * 1000), true)}
        </span>
      )}
      {time !== null && moment !== undefined && <span>+{offset(time.ts - moment.started_at, 0.001)}</span>}
      {reading !== null && <span className="run-time-reading">reading the log, {Math.floor(reading * 100)} %</span>}
    </div>
  );
}

function Live({
  at,
  last,
  isGoing,
  goLive,
}: {
  at: number | null;
  last: number;
  isGoing: boolean;
  goLive: () => void;
}) {
  const { isReachable, live } = useConnection();
  if (at !== null) {
    return (
      <Button size="small" icon="last" onClick={goLive} className="run-time-live">
        {isGoing ? `${plural(Math.max(0, last - at), "newer event")}; go live` : "To the end"}
      </Button>
    );
  }
  if (!isGoing) return <div className="run-time-live quiet">The latest event</div>;
  const isLost = !isReachable || live === "lost";
  return (
    <div className={names("run-time-live", "run-time-now", isLost && "run-time-lost")}>
      <span className="run-time-dot" /> {isLost ? "Not connected" : "Live"}
    </div>
  );
}

// ---- the track

interface TrackProps {
  /** The share of the log that the server has read. */
  read: number;
  seq: number;
  last: number;
  marks: readonly Mark[];
  isLive: boolean;
  text: string;
  go: (seq: number) => void;
}

function Track({ read, seq, last, marks, isLive, text, go }: TrackProps) {
  const track = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const element = track.current;
    if (element === null) return;
    const look = () => setWidth(element.clientWidth);
    look();
    const observer = new ResizeObserver(look);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  const seqOf = (event: PointerEvent<HTMLDivElement>) => {
    const at = event.currentTarget.getBoundingClientRect();
    return seqAt((event.clientX - at.left) / Math.max(1, at.width), last);
  };
  function onKeyDown(event: KeyboardEvent) {
    const to = keyed(event, seq, last);
    if (to === null || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    go(to);
  }
  const clusters = useMemo(() => clustered(marks, last, Math.max(1, width)), [marks, last, width]);
  const share = shareOf(seq, last) * 100;
  return (
    <div className="run-track-frame">
      <div
        ref={track}
        role="slider"
        aria-label="Moment of the run"
        aria-orientation="horizontal"
        aria-valuemin={1}
        aria-valuemax={last}
        aria-valuenow={seq}
        aria-valuetext={text}
        tabIndex={0}
        className={names("run-track", isLive && "run-track-live")}
        onKeyDown={onKeyDown}
        onPointerDown={(event) => {
          if (event.button !== 0) return;
          event.currentTarget.setPointerCapture(event.pointerId);
          event.currentTarget.focus({ preventScroll: true });
          go(seqOf(event));
        }}
        onPointerMove={(event) => {
          if (event.currentTarget.hasPointerCapture(event.pointerId)) go(seqOf(event));
        }}
      >
        <div className="run-track-line" />
        <div className="run-track-done" style={{ width: `${Math.min(share, read * 100)}%` }} />
        <div className="run-track-thumb" style={{ left: `${share}%` }} />
      </div>
      <MarkSigns clusters={clusters} go={go} />
    </div>
  );
}

const SIGNS: Record<Mark["kind"], { icon: IconName; tone: State; word: string }> = {
  start: { icon: "play", tone: "waiting", word: "Start" },
  resume: { icon: "resume", tone: "running", word: "Resumed" },
  failure: { icon: "failed", tone: "failed", word: "Failure" },
  retry: { icon: "retrying", tone: "retrying", word: "Retry" },
  interrupted: { icon: "interrupted", tone: "interrupted", word: "Interrupted" },
  cancel: { icon: "cancelled", tone: "cancelled", word: "Cancelled" },
  lost: { icon: "crashed", tone: "crashed", word: "Lost" },
  end: { icon: "stop", tone: "waiting", word: "End" },
};

/** Signs are a help for the pointer; with keys one goes from mark to mark. */
const MarkSigns = memo(function MarkSigns({
  clusters,
  go,
}: {
  clusters: readonly Cluster[];
  go: (seq: number) => void;
}) {
  return (
    <div className="run-marks" aria-hidden="true">
      {clusters.map(({ share, mark, marks }) => {
        const sign = SIGNS[mark.kind];
        const more = marks.length > 1 ? ` (and ${counted(marks.length - 1)} more close by)` : "";
        return (
          <Tooltip
            key={mark.seq}
            text={`${sign.word}, event ${counted(mark.seq)}: ${mark.text.replaceAll("`", "")}${more}`}
          >
            <button
              type="button"
              tabIndex={-1}
              className={names("run-mark", `ui-ink-${sign.tone}`)}
              data-kind={mark.kind}
              style={{ left: `${share * 100}%` }}
              onClick={() => go(mark.seq)}
            >
              <Icon name={sign.icon} size={11} />
            </button>
          </Tooltip>
        );
      })}
    </div>
  );
});
