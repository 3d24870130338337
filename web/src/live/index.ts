/**
 * News of runs, as they happen, at most four times a second.
 *
 *     const tick = useRun(executionId);                    // { seq, status, lines } or null; renders when it changes
 *     useRun(executionId, (tick) => refetchAfter(tick.seq)); // or a callback, too
 *     const runs = useRunsFeed();                           // Map of the runs that are new or have changed since the page was loaded
 *     useRunsFeed((changed) => …);
 *
 * A tick says only how far a run is; what happened is asked for with `after=` the last event that the page has.
 */
import { useCallback, useEffect, useRef, useSyncExternalStore } from "react";
import type { Run, Tick } from "./messages";
import { TabSide } from "./tab";

export type { Run, Tick } from "./messages";

const tab = new TabSide();

/** Called once, by the shell. */
export function startLive(): () => void {
  tab.start();
  const pause = () => tab.pause();
  const resume = () => tab.resume();
  const again = () => tab.again();
  window.addEventListener("pagehide", pause);
  window.addEventListener("pageshow", resume);
  window.addEventListener("online", again);
  return () => {
    window.removeEventListener("pagehide", pause);
    window.removeEventListener("pageshow", resume);
    window.removeEventListener("online", again);
    tab.stop();
  };
}

/** The latest of one run; null as long as nothing is known. */
export function useRun(executionId: string | null | undefined, onTick?: (tick: Tick) => void): Tick | null {
  const callback = useRef(onTick);
  useEffect(() => {
    callback.current = onTick;
  });
  useEffect(() => {
    if (!executionId) return;
    const known = tab.tick(executionId);
    if (known !== null) callback.current?.(known);
    return tab.watch(executionId, (tick) => callback.current?.(tick));
  }, [executionId]);
  const subscribe = useCallback(
    (listener: () => void) => (executionId ? tab.watch(executionId, listener) : () => undefined),
    [executionId],
  );
  return useSyncExternalStore(subscribe, () => (executionId ? tab.tick(executionId) : null));
}

/** The runs that the stream has told of, by id, as the list has them; with a callback also those that changed just now. */
export function useRunsFeed(onRuns?: (runs: readonly Run[]) => void): ReadonlyMap<string, Run> {
  const callback = useRef(onRuns);
  useEffect(() => {
    callback.current = onRuns;
  });
  useEffect(() => tab.feed((runs) => callback.current?.(runs)), []);
  return useSyncExternalStore(subscribeToRuns, latestRuns);
}

const subscribeToRuns = (listener: () => void) => tab.feed(listener);
const latestRuns = () => tab.runs();
