/**
 * The states of what is drawn, each watched by itself: when a moment comes, only the cards and links whose state has changed are drawn
 * again. A moment keeps the objects of what has not changed, so that comparing is looking whether they are the same.
 */
import { createContext, useCallback, useContext, useSyncExternalStore } from "react";
import type { EdgeState, Moment, NodeState } from "../context";

export type FrameState = Moment["frames"][string];

type Kind = "node" | "edge" | "frame" | "selected" | "time";
type Value = NodeState | EdgeState | FrameState | boolean | number;

export class States {
  readonly #values = new Map<string, Value>();
  readonly #listeners = new Map<string, Set<() => void>>();

  node = (id: string) => this.#values.get(`node ${id}`) as NodeState | undefined;
  edge = (id: string) => this.#values.get(`edge ${id}`) as EdgeState | undefined;
  frame = (id: string) => this.#values.get(`frame ${id}`) as FrameState | undefined;
  isSelected = (id: string) => this.#values.get(`selected ${id}`) === true;

  /** The time of the moment that is shown. */
  time = () => (this.#values.get("time ") as number | undefined) ?? 0;

  watch(kind: Kind, ids: readonly string[], listener: () => void): () => void {
    const keys = ids.map((id) => `${kind} ${id}`);
    for (const key of keys) {
      const known = this.#listeners.get(key) ?? new Set();
      this.#listeners.set(key, known.add(listener));
    }
    return () => {
      for (const key of keys) {
        const known = this.#listeners.get(key);
        known?.delete(listener);
        if (known?.size === 0) this.#listeners.delete(key);
      }
    };
  }

  /** Takes what a moment says; returns how many states changed. */
  show(moment: Pick<Moment, "nodes" | "edges" | "frames"> & { ts?: number }): number {
    this.#replace("time", { "": moment.ts ?? 0 });
    return (
      this.#replace("node", moment.nodes) + this.#replace("edge", moment.edges) + this.#replace("frame", moment.frames)
    );
  }

  select(ids: readonly string[]) {
    this.#replace("selected", Object.fromEntries(ids.map((id) => [id, true])));
  }

  #replace(kind: Kind, values: Readonly<Record<string, Value>>): number {
    const changed: string[] = [];
    const prefix = `${kind} `;
    for (const key of this.#values.keys()) {
      if (key.startsWith(prefix) && !(key.slice(prefix.length) in values)) {
        this.#values.delete(key);
        changed.push(key);
      }
    }
    for (const [id, value] of Object.entries(values)) {
      const key = prefix + id;
      if (this.#values.get(key) === value) continue;
      this.#values.set(key, value);
      changed.push(key);
    }
    for (const key of changed) for (const listener of this.#listeners.get(key) ?? []) listener();
    return changed.length;
  }
}

export const StatesContext = createContext<States>(new States());

export function useNodeState(id: string | null): NodeState | undefined {
  const states = useContext(StatesContext);
  const subscribe = useCallback(
    (listener: () => void) => (id === null ? () => undefined : states.watch("node", [id], listener)),
    [states, id],
  );
  return useSyncExternalStore(subscribe, () => (id === null ? undefined : states.node(id)));
}

export function useFrameState(id: string | null): FrameState | undefined {
  const states = useContext(StatesContext);
  const subscribe = useCallback(
    (listener: () => void) => (id === null ? () => undefined : states.watch("frame", [id], listener)),
    [states, id],
  );
  return useSyncExternalStore(subscribe, () => (id === null ? undefined : states.frame(id)));
}

export function useIsSelected(id: string): boolean {
  const states = useContext(StatesContext);
  const subscribe = useCallback((listener: () => void) => states.watch("selected", [id], listener), [states, id]);
  return useSyncExternalStore(subscribe, () => states.isSelected(id));
}

/** The time of the moment; only what goes on at that moment watches it. */
export function useMomentTime(isWatched: boolean): number {
  const states = useContext(StatesContext);
  const subscribe = useCallback(
    (listener: () => void) => (isWatched ? states.watch("time", [""], listener) : () => undefined),
    [states, isWatched],
  );
  return useSyncExternalStore(subscribe, () => (isWatched ? states.time() : 0));
}
