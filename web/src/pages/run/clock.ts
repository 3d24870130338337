/** The server's clock: durations of what runs are counted on it, because the clock of this machine may be wrong. */
import { lasting, useNow } from "@/ui";

class ServerClock {
  /** In seconds, to be added to the time here. */
  #ahead = 0;
  #isKnown = false;

  heard(now: number) {
    const ahead = now - Date.now() / 1000;
    // An answer is always a little late: the one that was least late knows best, unless the clock was set.
    if (!this.#isKnown || ahead > this.#ahead || this.#ahead - ahead > 5) this.#ahead = ahead;
    this.#isKnown = true;
  }

  now(): number {
    return Date.now() / 1000 + this.#ahead;
  }

  of(here: number): number {
    return here / 1000 + this.#ahead;
  }
}

export const serverClock = new ServerClock();

/** How long something that goes on has lasted, in whole seconds: nobody reads tenths that count up. */
export function goingFor(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  return seconds < 10 ? `${seconds} s` : lasting(seconds * 1000);
}

/** The server's time in seconds, looked at anew every so often; what stands still is told by `stopped`. */
export function useServerNow(interval: number | null, stopped: number): number {
  const here = useNow(interval);
  return interval === null ? stopped : serverClock.of(here);
}
