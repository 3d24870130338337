/** Links, drawn by ourselves in one SVG: React Flow's own would be drawn anew with every node that changes. */
import { memo, useCallback, useContext, useMemo, useRef, useSyncExternalStore } from "react";
import { names } from "@/ui";
import { GraphContext } from "./actions";
import { RATE_BELOW_LINK, RATE_BELOW_WORDS } from "./labels";
import { type Label, type Layout, type Point, pathOf } from "./layout";
import type { Picture, Wire } from "./picture";
import { StatesContext, useIsSelected } from "./states";
import { rateText, type WireSeen, wireLabel, wireName, wireSeen } from "./wording";

const ARROW = 8;

export function useWire(wire: Wire): WireSeen {
  const states = useContext(StatesContext);
  const ids = useMemo(() => wire.edges.map((edge) => edge.id), [wire]);
  const subscribe = useCallback((listener: () => void) => states.watch("edge", ids, listener), [states, ids]);
  const last = useRef<{ key: unknown[]; value: WireSeen } | null>(null);
  return useSyncExternalStore(subscribe, () => {
    const now = ids.map((id) => states.edge(id));
    if (
      last.current === null ||
      now.some((one, at) => one !== last.current?.key[at]) ||
      last.current.key.length !== now.length
    ) {
      last.current = { key: now, value: wireSeen(now) };
    }
    return last.current.value;
  });
}

/** A triangle at the end, in the direction of its last part. */
function arrowOf(points: readonly Point[]): string {
  const [x, y] = points.at(-1) as Point;
  const [bx, by] = points.at(-2) as Point;
  const length = Math.hypot(x - bx, y - by) || 1;
  const [ux, uy] = [(x - bx) / length, (y - by) / length];
  const [cx, cy] = [x - ux * ARROW, y - uy * ARROW];
  const half = ARROW * 0.5;
  return `M${x} ${y}L${cx - uy * half} ${cy + ux * half}L${cx + uy * half} ${cy - ux * half}Z`;
}

/** Ends before the tip of the arrow, which is thinner than the line. */
function shortenedBy(points: readonly Point[], by: number): readonly Point[] {
  const [x, y] = points.at(-1) as Point;
  const [bx, by2] = points.at(-2) as Point;
  const length = Math.hypot(x - bx, y - by2) || 1;
  const cut = Math.min(by, length - 1);
  return [...points.slice(0, -1), [x - ((x - bx) / length) * cut, y - ((y - by2) / length) * cut]];
}

interface WireViewProps {
  wire: Wire;
  points: readonly Point[];
  label: Label;
  isRight: boolean;
}

const WireView = memo(function WireView({ wire, points, label, isRight }: WireViewProps) {
  const { selectWire } = useContext(GraphContext);
  const state = useWire(wire);
  const isSelected = useIsSelected(`e:${wire.id}`);
  const path = useMemo(() => pathOf(shortenedBy(points, ARROW - 1)), [points]);
  const arrow = useMemo(() => arrowOf(points), [points]);
  const text = wireLabel(wire, state);
  const name = wireName(wire, state);
  const { x, y, anchor } = label;
  const rate = wire.kind === "data" && state.rate !== null && state.rate > 0 ? rateText(state.rate) : null;
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the button in it takes the keys; a click on its label does the same.
    <g
      data-wire={wire.id}
      data-state={state.state}
      data-on={wire.on}
      className={names(
        "run-wire",
        `run-wire-${wire.kind}`,
        wire.isFailure && "run-wire-failure",
        isSelected && "run-wire-selected",
      )}
      onClick={() => selectWire(wire.id)}
    >
      {/* biome-ignore lint/a11y/useSemanticElements: an element of an SVG cannot be a <button>. */}
      <g
        role="button"
        tabIndex={-1}
        aria-label={name}
        aria-pressed={isSelected}
        className="run-wire-face"
        onKeyDown={(event) => {
          if (event.key !== "Enter" && event.key !== " ") return;
          event.preventDefault();
          event.stopPropagation();
          selectWire(wire.id);
        }}
      >
        <title>{name}</title>
        <path className="run-wire-hit" d={path} />
        <path className="run-wire-line" d={path} />
        <path className="run-wire-arrow" d={arrow} />
      </g>
      {text !== "" && (
        <text
          className="run-wire-label"
          x={x}
          y={y}
          dy={isRight || rate === null ? "0.32em" : "-0.3em"}
          textAnchor={anchor}
        >
          {text}
        </text>
      )}
      {rate !== null && (
        <text
          className="run-wire-label run-wire-rate"
          x={x}
          y={y + (label.isBelow === true ? RATE_BELOW_WORDS : isRight ? RATE_BELOW_LINK : 7)}
          dy="0.32em"
          textAnchor={anchor}
        >
          {rate}
        </text>
      )}
    </g>
  );
});

interface WiresProps {
  picture: Picture;
  layout: Layout;
  isRight: boolean;
}

export const Wires = memo(function Wires({ picture, layout, isRight }: WiresProps) {
  return (
    // biome-ignore lint/a11y/noSvgWithoutTitle: each link in it has a title, and one for all would hide them.
    <svg className="run-wires" width={layout.width + 80} height={layout.height + 80}>
      {picture.wires.map((wire) => {
        const route = layout.routes[wire.id];
        if (route === undefined || route.points.length < 2) return null;
        return <WireView key={wire.id} wire={wire} points={route.points} label={route.label} isRight={isRight} />;
      })}
    </svg>
  );
});
