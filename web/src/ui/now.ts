/** One clock for all that shows how long ago or how long: one timer for each interval, however many watch it. */
import { useCallback, useSyncExternalStore } from "react";

interface Clock {
  now: number;
  listeners: Set<() => void>;
  timer: number | undefined;
}

const clocks = new Map<number, Clock>();

function clockOf(interval: number): Clock {
  let clock = clocks.get(interval);
  if (clock === undefined) {
    clock = { now: Date.now(), listeners: new Set(), timer: undefined };
    clocks.set(interval, clock);
  }
  return clock;
}

/** The time in milliseconds since the epoch, looked at anew every so often; null stands still. */
export function useNow(interval: number | null): number {
  // The same function for every render: what is drawn more often than the clock ticks would start its timer anew each time.
  const subscribe = useCallback(
    (listener: () => void) => {
      if (interval === null) return () => undefined;
      const clock = clockOf(interval);
      clock.listeners.add(listener);
      clock.timer ??= window.setInterval(() => {
        clock.now = Date.now();
        for (const each of clock.listeners) each();
      }, interval);
      return () => {
        clock.listeners.delete(listener);
        if (clock.listeners.size > 0) return;
        window.clearInterval(clock.timer);
        clock.timer = undefined;
      };
    },
    [interval],
  );
  return useSyncExternalStore(subscribe, () => {
    if (interval === null) return 0;
    const clock = clockOf(interval);
    if (clock.timer === undefined && Date.now() - clock.now > interval) clock.now = Date.now();
    return clock.now;
  });
}
