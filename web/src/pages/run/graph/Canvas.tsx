/** The drawing itself: it is moved, enlarged, and walked through with keys. */
import {
  Background,
  BackgroundVariant,
  MiniMap,
  type MiniMapNodeProps,
  type NodeTypes,
  Panel,
  ReactFlow,
  useReactFlow,
  useStore,
  type Viewport,
  ViewportPortal,
} from "@xyflow/react";
import {
  type KeyboardEvent,
  memo,
  type ReactNode,
  type RefObject,
  useCallback,
  useContext,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
} from "react";
import { Button, IconButton, names, stateOf } from "@/ui";
import type { Graph } from "../context";
import { GraphContext } from "./actions";
import { type BoxNode, BoxView, type CardNode, CardView } from "./Card";
import type { Frames } from "./frames";
import type { Direction, Layout, Rect } from "./layout";
import type { Size } from "./measure";
import type { Picture, Wire } from "./picture";
import { type States, StatesContext, useFrameState, useNodeState } from "./states";
import { useWire, Wires } from "./Wires";
import { first, WAYS, walked } from "./walk";
import { wireName } from "./wording";

const nodeTypes: NodeTypes = { card: CardView, box: BoxView };
const LARGE = 60;
/** So many cards may be on the screen: a browser draws them one by one. */
const MOST_ON_SCREEN = 300;
const READABLE = 0.5;
/** Nothing begins smaller than this. */
const COMFORTABLE = 0.72;

export interface Drawn {
  picture: Picture;
  layout: Layout;
}

interface CanvasProps {
  graph: Graph;
  drawn: Drawn;
  size: Size;
  direction: Direction;
  selected: string | null;
  wire: Wire | null;
  showLine: ((file: string, line: number) => void) | undefined;
  onDirection: (direction: Direction) => void;
  frames: Frames;
  clear: () => void;
  aside?: ReactNode;
}

export const Canvas = memo(function Canvas({
  graph,
  drawn,
  size,
  direction,
  selected,
  wire,
  showLine,
  onDirection,
  frames,
  clear,
  aside,
}: CanvasProps) {
  const { picture, layout } = drawn;
  const flow = useReactFlow();
  const states = useContext(StatesContext);
  const isTouched = useRef(false);
  const cards = picture.cards.length;
  const nodes = useMemo(() => flowNodes(picture, layout), [picture, layout]);
  const whole = useMemo(() => fitted(layout, size), [layout, size]);
  const least = leastZoom(cards, layout, size, whole.zoom);
  const isFar = useStore((store) => store.transform[2] < READABLE);

  const begin = useCallback(
    (isQuick = false) => {
      void flow.setViewport(begun(picture, layout, size, failedOf(picture, states)), { duration: isQuick ? 0 : 200 });
    },
    [flow, picture, layout, size, states],
  );
  const showAll = useCallback(() => {
    isTouched.current = true;
    void flow.setViewport(begun(picture, layout, size, failedOf(picture, states), least), { duration: 200 });
  }, [flow, picture, layout, size, states, least]);
  // A pane that changes its size keeps the whole in view, until somebody has moved it.
  // biome-ignore lint/correctness/useExhaustiveDependencies: what is drawn anew is handled below.
  useLayoutEffect(() => {
    if (!isTouched.current) begin(true);
  }, [size]);
  useSteady(layout, isTouched, begin);
  useFollow(layout, selected, size);

  const keyed = useKeys({ picture, layout, direction, selected, wire: wire?.id ?? null, clear, showAll });
  const onMove = useCallback((event: unknown) => {
    if (event !== null) isTouched.current = true;
  }, []);
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms.
    <div
      role="group"
      aria-label={`Graph of ${graph.name}: arrows move along the links, Enter opens, L goes through the links`}
      className={names("run-canvas", isFar && "run-canvas-far", cards > LARGE && "run-canvas-large")}
      // One stop of the Tab key; inside, arrows move. A card that is out of sight is not there to be stopped at.
      // biome-ignore lint/a11y/noNoninteractiveTabindex: the group takes the keys.
      tabIndex={0}
      onKeyDown={keyed}
    >
      <ReactFlow
        nodes={nodes}
        edges={NONE}
        nodeTypes={nodeTypes}
        defaultViewport={begun(picture, layout, size, failedOf(picture, states))}
        minZoom={least}
        maxZoom={2}
        nodesDraggable={false}
        nodesConnectable={false}
        nodesFocusable={false}
        edgesFocusable={false}
        elementsSelectable={false}
        onlyRenderVisibleElements={cards > LARGE}
        disableKeyboardA11y
        zoomOnDoubleClick={false}
        deleteKeyCode={null}
        selectionKeyCode={null}
        multiSelectionKeyCode={null}
        onMove={onMove}
        onPaneClick={clear}
        proOptions={ATTRIBUTION}
      >
        <Background variant={BackgroundVariant.Dots} gap={20} size={1} color="var(--line)" />
        <ViewportPortal>
          <Wires picture={picture} layout={layout} isRight={direction === "right"} />
        </ViewportPortal>
        <Controls direction={direction} onDirection={onDirection} showAll={showAll} graph={graph} frames={frames} />
        {cards > LARGE && (
          <MiniMap
            pannable
            zoomable
            ariaLabel="Overview of the graph"
            nodeComponent={MapNode}
            bgColor="var(--surface)"
            maskColor="color-mix(in srgb, var(--ground) 65%, transparent)"
            position="bottom-right"
          />
        )}
        {wire !== null && <WireInfo wire={wire} showLine={showLine} />}
        {aside !== undefined && <Panel position="top-left">{aside}</Panel>}
      </ReactFlow>
    </div>
  );
});

const NONE: never[] = [];
const ATTRIBUTION = { hideAttribution: true };

function flowNodes(picture: Picture, layout: Layout): (CardNode | BoxNode)[] {
  const placed = (rect: Rect | undefined) => ({
    position: { x: rect?.x ?? 0, y: rect?.y ?? 0 },
    width: rect?.width ?? 10,
    height: rect?.height ?? 10,
    draggable: false,
    selectable: false,
  });
  return [
    ...picture.boxes.map(
      (box): BoxNode => ({ id: box.id, type: "box", data: { box }, zIndex: -1, ...placed(layout.boxes[box.id]) }),
    ),
    ...picture.cards.map(
      (card): CardNode => ({ id: card.id, type: "card", data: { card }, zIndex: 1, ...placed(layout.cards[card.id]) }),
    ),
  ];
}

/** All of it in the pane, not larger than it is. */
function fitted(layout: Layout, size: Size, least = 0.05): Viewport {
  const { width, height } = room(size);
  const zoom = Math.max(least, Math.min(1, width / Math.max(1, layout.width), height / Math.max(1, layout.height)));
  return { x: PAD + (width - layout.width * zoom) / 2, y: TOP + (height - layout.height * zoom) / 2, zoom };
}

/** What would be too small to be read begins at its beginning, or at what failed. */
function begun(picture: Picture, layout: Layout, size: Size, failed: string | null, zoom = COMFORTABLE): Viewport {
  const view = fitted(layout, size, zoom);
  const { width, height } = room(size);
  const start = failed ?? first(picture, layout);
  const rect = start === null ? undefined : layout.cards[start];
  if (rect === undefined) return view;
  const along = (value: number, from: number, length: number, whole: number, pad: number) =>
    whole * view.zoom <= length
      ? value
      : // As near to the middle as the walls of the drawing allow.
        Math.min(pad, Math.max(pad + length - whole * view.zoom, pad + length / 2 - from * view.zoom));
  return {
    x: along(view.x, rect.x + rect.width / 2, width, layout.width, PAD),
    y: along(view.y, rect.y + rect.height / 2, height, layout.height, TOP),
    zoom: view.zoom,
  };
}

/** The first card that has failed. */
function failedOf(picture: Picture, states: States): string | null {
  const found = picture.cards.find((card) =>
    card.node === null
      ? card.frame !== null && states.frame(card.frame.id)?.status === "failed"
      : states.node(card.node.id)?.status === "failed",
  );
  return found?.id ?? null;
}

/** As small as it takes to see all of it, but for graphs that are too large to be drawn at once: then there is the overview. */
function leastZoom(cards: number, layout: Layout, size: Size, whole: number): number {
  const share = (length: number, of: number, zoom: number) => Math.min(1, length / Math.max(1, of * zoom));
  let zoom = whole;
  while (
    cards * share(size.width, layout.width, zoom) * share(size.height, layout.height, zoom) > MOST_ON_SCREEN &&
    zoom < 1
  )
    zoom *= 1.05;
  return zoom > whole ? zoom : Math.min(0.2, whole * 0.7);
}

const PAD = 24;
/** Room for the buttons. */
const TOP = 52;
const room = (size: Size) => ({ width: size.width - 2 * PAD, height: size.height - TOP - PAD });

/** What was opened or closed stays where it is on the screen, unless the whole still fits. */
function useSteady(layout: Layout, isTouched: RefObject<boolean>, begin: () => void) {
  const flow = useReactFlow();
  const before = useRef<Layout>(layout);
  useLayoutEffect(() => {
    const old = before.current;
    before.current = layout;
    if (old === layout) return;
    if (!isTouched.current) {
      begin();
      return;
    }
    const rect = (of: Layout, id: string) => of.cards[id] ?? of.boxes[id];
    const view = flow.getViewport();
    const ids = Object.keys({ ...layout.boxes, ...layout.cards }).filter((id) => rect(old, id) !== undefined);
    const changed = ids.find((id) => id in old.cards !== id in layout.cards) ?? ids[0];
    if (changed === undefined) return;
    const [from, to] = [rect(old, changed), rect(layout, changed)];
    if (from === undefined || to === undefined) return;
    void flow.setViewport({
      ...view,
      x: view.x + (from.x - to.x) * view.zoom,
      y: view.y + (from.y - to.y) * view.zoom,
    });
  }, [layout, flow, begin, isTouched]);
}

/** A selection that comes from elsewhere is brought into view. */
function useFollow(layout: Layout, selected: string | null, size: Size) {
  const flow = useReactFlow();
  useEffect(() => {
    const rect = selected === null ? undefined : (layout.cards[selected] ?? layout.boxes[selected]);
    if (rect === undefined) return;
    const { x, y, zoom } = flow.getViewport();
    const left = rect.x * zoom + x;
    const top = rect.y * zoom + y;
    const isSeen =
      left >= 0 &&
      top >= 0 &&
      left + Math.min(rect.width, 120) * zoom <= size.width &&
      top + Math.min(rect.height, 60) * zoom <= size.height;
    if (!isSeen)
      void flow.setCenter(rect.x + rect.width / 2, rect.y + Math.min(rect.height, 80) / 2, { zoom, duration: 200 });
  }, [selected, layout, size, flow]);
}

/** It may be out of sight and not drawn yet. */
function focusOn(pane: HTMLElement, id: string) {
  requestAnimationFrame(() =>
    requestAnimationFrame(() =>
      pane.querySelector<HTMLElement>(`[data-graph-id="${CSS.escape(id)}"]`)?.focus({ preventScroll: true }),
    ),
  );
}

interface KeysOf {
  picture: Picture;
  layout: Layout;
  direction: Direction;
  selected: string | null;
  wire: string | null;
  clear: () => void;
  showAll: () => void;
}

function useKeys({ picture, layout, direction, selected, wire, clear, showAll }: KeysOf) {
  const flow = useReactFlow();
  const actions = useContext(GraphContext);
  const states = useContext(StatesContext);
  // What is opened becomes a box, which is drawn when it has been laid out: the focus waits for it.
  const wanted = useRef<{ id: string; pane: HTMLElement } | null>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new layout is what it waits for.
  useEffect(() => {
    if (wanted.current === null) return;
    focusOn(wanted.current.pane, wanted.current.id);
    wanted.current = null;
  }, [layout]);
  return (event: KeyboardEvent<HTMLDivElement>) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const pane = event.currentTarget;
    const focused = (event.target as HTMLElement).dataset.graphId ?? selected;
    const way = WAYS[event.key];
    const done = () => {
      event.preventDefault();
      event.stopPropagation();
    };
    if (way !== undefined) {
      const to = walked(picture, layout, focused, way, direction);
      done();
      if (to === null) return;
      actions.select(to);
      focusOn(pane, to);
    } else if (event.key === "Enter" && focused !== null) {
      const card = picture.cards.find((one) => one.id === focused);
      const box = picture.boxes.find((one) => one.id === focused);
      if (card === undefined && box === undefined) return;
      done();
      if (box !== undefined || (card !== undefined && card.inside > 0)) {
        wanted.current = { id: focused, pane };
        if (box !== undefined) actions.close(focused);
        else actions.open(focused);
      } else actions.select(focused);
    } else if (event.key === "l" && focused !== null) {
      const around = picture.wires.filter((one) => one.source === focused || one.target === focused);
      const next = around[(around.findIndex((one) => one.id === wire) + 1) % Math.max(1, around.length)];
      done();
      if (next !== undefined) actions.selectWire(next.id);
    } else if (event.key === "i" && focused?.startsWith("n:")) {
      const child = states.node(focused.slice(2))?.children[0];
      if (child === undefined) return;
      done();
      actions.stepInto(child);
    } else if (event.key === "+" || event.key === "=") {
      done();
      void flow.zoomIn({ duration: 120 });
    } else if (event.key === "-") {
      done();
      void flow.zoomOut({ duration: 120 });
    } else if (event.key === "0" || event.key === "f") {
      done();
      showAll();
    } else if (event.key === "Escape") {
      done();
      clear();
    }
  };
}

function Controls({
  direction,
  onDirection,
  showAll,
  graph,
  frames,
}: {
  direction: Direction;
  onDirection: (direction: Direction) => void;
  showAll: () => void;
  graph: Graph;
  frames: Frames;
}) {
  const flow = useReactFlow();
  return (
    <Panel position="top-right" className="run-graph-controls">
      {graph.frames.length > 0 && (
        <>
          <IconButton size="small" icon="expand" label="Open all frames" onClick={() => frames.all(true)} />
          <IconButton size="small" icon="collapse" label="Close all frames" onClick={() => frames.all(false)} />
        </>
      )}
      <IconButton
        size="small"
        icon={direction === "right" ? "arrow-down" : "arrow-right"}
        label={direction === "right" ? "Draw from top to bottom" : "Draw from left to right"}
        onClick={() => onDirection(direction === "right" ? "down" : "right")}
      />
      <IconButton
        size="small"
        icon="zoom-out"
        label="Zoom out"
        keys="-"
        onClick={() => void flow.zoomOut({ duration: 120 })}
      />
      <IconButton
        size="small"
        icon="zoom-in"
        label="Zoom in"
        keys="+"
        onClick={() => void flow.zoomIn({ duration: 120 })}
      />
      <IconButton size="small" icon="fit" label="Fit to view" keys="0" onClick={showAll} />
    </Panel>
  );
}

/** The selected link in words, with its guard in full. */
function WireInfo({ wire, showLine }: { wire: Wire; showLine: CanvasProps["showLine"] }) {
  const state = useWire(wire);
  const edge = wire.edges[0];
  const line = edge?.line ?? null;
  return (
    <Panel position="bottom-left" className="run-wire-info">
      <span role="status">{wireName(wire, state)}</span>
      {wire.edges.map(
        (one) =>
          one.guard && (
            <code key={one.id} className="ui-literal">
              {one.guard}
            </code>
          ),
      )}
      {showLine !== undefined && edge !== undefined && line !== null && (
        <Button size="small" look="quiet" icon="code" onClick={() => showLine(edge.file, line)}>
          line {line}
        </Button>
      )}
    </Panel>
  );
}

/** In the overview: a rectangle in the colour of the state. */
const MapNode = memo(function MapNode({ id, x, y, width, height }: MiniMapNodeProps) {
  const isFrame = id.startsWith("f:");
  const node = useNodeState(isFrame ? null : id.slice(2));
  const frame = useFrameState(isFrame ? id.slice(2) : null);
  const state = stateOf((node ?? frame)?.status ?? "waiting");
  return <rect className={names("run-map-node", `ui-ink-${state}`)} x={x} y={y} width={width} height={height} rx={6} />;
});
