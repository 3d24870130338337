/** Which frames of a graph are open: kept while the page is there, for each graph by itself. */
import { useCallback, useMemo, useSyncExternalStore } from "react";
import type { Graph } from "../context";
import { framesAround, openAtFirst, pictured, shows } from "./picture";

const opened = new Map<string, ReadonlySet<string>>();
const listeners = new Set<() => void>();
const MOST = 200;

function set(key: string, open: ReadonlySet<string>) {
  opened.delete(key);
  opened.set(key, open);
  for (const oldest of opened.keys()) {
    if (opened.size <= MOST) break;
    opened.delete(oldest);
  }
  for (const listener of listeners) listener();
}

export interface Frames {
  open: ReadonlySet<string>;
  toggle: (frame: string, isOpen: boolean) => void;
  all: (isOpen: boolean) => void;
  /** Opens what is around a node, so that it is seen. */
  reveal: (node: string) => void;
}

export function useFrames(key: string, graph: Graph): Frames {
  const atFirst = useMemo(() => openAtFirst(graph), [graph]);
  const open = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => opened.get(key) ?? atFirst,
  );
  const now = useCallback(() => opened.get(key) ?? atFirst, [key, atFirst]);
  const toggle = useCallback(
    (frame: string, isOpen: boolean) => {
      const next = new Set(now());
      if (isOpen) next.add(frame);
      else next.delete(frame);
      set(key, next);
    },
    [key, now],
  );
  const all = useCallback(
    (isOpen: boolean) => set(key, new Set(isOpen ? graph.frames.map((frame) => frame.id) : [])),
    [key, graph],
  );
  const reveal = useCallback(
    (node: string) => {
      if (!graph.nodes.some((one) => one.id === node) || shows(pictured(graph, now()), node)) return;
      set(key, new Set([...now(), ...framesAround(graph, node)]));
    },
    [key, graph, now],
  );
  return useMemo(() => ({ open, toggle, all, reveal }), [open, toggle, all, reveal]);
}
