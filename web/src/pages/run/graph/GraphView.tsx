/** The graph of an execution with its states at the moment that is shown. */
import { ReactFlowProvider } from "@xyflow/react";
import "@xyflow/react/dist/base.css";
import {
  type ReactNode,
  type RefObject,
  useCallback,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import { Loading } from "@/ui";
import type { Graph, Moment } from "../context";
import { type GraphActions, GraphContext } from "./actions";
import { Canvas, type Drawn } from "./Canvas";
import { type Frames, useFrames } from "./frames";
import type { Direction } from "./layout";
import type { Size } from "./measure";
import { drawnAs, frameId, type Picture, pictured, withoutOnlySubjob } from "./picture";
import { betterDirection, laidOut, laidOutNow, layoutKey } from "./place";
import { States, StatesContext } from "./states";
import "./graph.css";

interface GraphViewProps {
  /** Layouts and open frames are kept under this. */
  id: string;
  graph: Graph;
  moment: Pick<Moment, "nodes" | "edges" | "frames" | "ts" | "is_live"> | undefined;
  node: string | null;
  edge: string | null;
  select: (node: string | null) => void;
  selectEdge: (edge: string | null) => void;
  stepInto?: (scope: string) => void;
  /** Goes to where something is written down. */
  showLine?: (file: string, line: number) => void;
  /** Shown in the corner. */
  aside?: ReactNode;
}

export function GraphView(props: GraphViewProps) {
  return (
    <ReactFlowProvider>
      <Drawing key={props.id} {...props} />
    </ReactFlowProvider>
  );
}

function Drawing({
  id,
  graph: given,
  moment,
  node,
  edge,
  select,
  selectEdge,
  stepInto,
  showLine,
  aside,
}: GraphViewProps) {
  const graph = useMemo(() => withoutOnlySubjob(given), [given]);
  const [states] = useState(() => new States());
  const pane = useRef<HTMLDivElement>(null);
  const size = useSize(pane);
  const frames = useFrames(id, graph);
  // A link to a node inside a closed frame opens it; later the frame is marked, and nothing jumps.
  const wanted = useRef(node);
  useLayoutEffect(() => {
    if (wanted.current !== null) frames.reveal(wanted.current);
    wanted.current = null;
  }, [frames]);
  const picture = useMemo(() => pictured(graph, frames.open), [graph, frames.open]);
  const [chosen, setChosen] = useState<Direction | null>(null);
  const direction = useDirection(picture, size, chosen);
  const layout = useLayout(graph, picture, frames.open, direction);

  // Before the first cards are drawn they know their states, and afterwards each hears of its own.
  const shownMoment = useRef<unknown>(null);
  if (moment !== undefined && shownMoment.current === null) {
    shownMoment.current = moment;
    states.show(moment);
  }
  useLayoutEffect(() => {
    if (moment !== undefined) states.show(moment);
  }, [states, moment]);

  // The selection is shown where it is drawn: on the closed frame around it, if it is in one.
  const selected = node === null ? null : drawnAs(graph, picture, node);
  const wire = edge === null ? null : (picture.wires.find((one) => one.edges.some((each) => each.id === edge)) ?? null);
  useLayoutEffect(() => {
    states.select([selected, wire === null ? null : `e:${wire.id}`].filter((one) => one !== null));
  }, [states, selected, wire]);

  const latest = useRef({ select });
  useLayoutEffect(() => {
    latest.current = { select };
  });
  const clear = useCallback(() => latest.current.select(null), []);
  const actions = useActions(graph, picture, frames, moment, { select, selectEdge, stepInto });
  return (
    <StatesContext value={states}>
      <GraphContext value={actions}>
        <div ref={pane} className="run-graph">
          {layout === null || size === null ? (
            <Loading label="Laying out the graph" />
          ) : (
            <Canvas
              key={direction}
              graph={graph}
              drawn={layout}
              size={size}
              direction={direction}
              selected={selected}
              wire={wire}
              showLine={showLine}
              onDirection={setChosen}
              frames={frames}
              clear={clear}
              aside={aside}
            />
          )}
        </div>
      </GraphContext>
    </StatesContext>
  );
}

function useSize(pane: RefObject<HTMLDivElement | null>): Size | null {
  const [size, setSize] = useState<Size | null>(null);
  useLayoutEffect(() => {
    const element = pane.current;
    if (element === null) return;
    const look = () => setSize({ width: element.clientWidth, height: element.clientHeight });
    look();
    const observer = new ResizeObserver(look);
    observer.observe(element);
    return () => observer.disconnect();
  }, [pane]);
  return size;
}

/** The one that was chosen, or the one that fits the pane; once found, it stays: nothing turns round by itself. */
function useDirection(picture: Picture, size: Size | null, chosen: Direction | null): Direction {
  const found = useRef<Direction | null>(null);
  if (found.current === null && size !== null && size.width > 0) found.current = betterDirection(picture, size);
  return chosen ?? found.current ?? "right";
}

function useLayout(graph: Graph, picture: Picture, open: ReadonlySet<string>, direction: Direction): Drawn | null {
  const key = layoutKey(graph, graph.kind, open, direction);
  const now = useMemo(() => laidOutNow(key, picture, direction), [key, picture, direction]);
  const [made, setMade] = useState<{ key: string; drawn: Drawn } | null>(null);
  useEffect(() => {
    if (now !== null) {
      setMade({ key, drawn: { picture, layout: now } });
      return;
    }
    let isWanted = true;
    void laidOut(key, picture, direction).then((layout) => isWanted && setMade({ key, drawn: { picture, layout } }));
    return () => {
      isWanted = false;
    };
  }, [key, now, picture, direction]);
  const current = useMemo(() => (now === null ? null : { picture, layout: now }), [picture, now]);
  // While a frame that was opened is laid out, what was there stays.
  return current ?? made?.drawn ?? null;
}

function useActions(
  graph: Graph,
  picture: Picture,
  frames: Frames,
  moment: GraphViewProps["moment"],
  given: Pick<GraphViewProps, "select" | "selectEdge" | "stepInto">,
): GraphActions {
  const now = useRef({ graph, picture, frames, given });
  useLayoutEffect(() => {
    now.current = { graph, picture, frames, given };
  });
  const isLive = moment?.is_live ?? false;
  return useMemo(() => {
    const frameOf = (drawn: string) => now.current.graph.frames.find((frame) => frameId(frame) === drawn);
    return {
      isLive,
      select: (drawn) => {
        const frame = drawn.startsWith("f:") ? frameOf(drawn) : undefined;
        // A sub-job is selected by the component that it begins with.
        const node =
          frame === undefined ? drawn.slice(2) : now.current.graph.nodes.find((one) => one.frame === frame.id)?.id;
        now.current.given.select(node ?? null);
      },
      selectWire: (wire) => {
        const found = now.current.picture.wires.find((one) => one.id === wire)?.edges[0];
        now.current.given.selectEdge(found?.id ?? null);
      },
      open: (drawn) => {
        const frame = frameOf(drawn);
        if (frame !== undefined) now.current.frames.toggle(frame.id, true);
      },
      close: (drawn) => {
        const frame = frameOf(drawn);
        if (frame !== undefined) now.current.frames.toggle(frame.id, false);
      },
      stepInto: (scope) => now.current.given.stepInto?.(scope),
    };
  }, [isLive]);
}
