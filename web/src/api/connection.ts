/** Whether the server answers: what requests and the live stream have seen last. Shown in the top bar. */
import { useSyncExternalStore } from "react";

export type Live = "connecting" | "live" | "lost" | "off";

export interface Connection {
  /** False from the first request that got no answer to the next that got one. */
  readonly isReachable: boolean;
  /** The stream of news. */
  readonly live: Live;
  /** When the stream will try again, as milliseconds since the epoch. */
  readonly nextTry: number | null;
}

class Watch {
  #now: Connection = { isReachable: true, live: "connecting", nextTry: null };
  #listeners = new Set<() => void>();

  get = (): Connection => this.#now;

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  answered() {
    this.#set({ isReachable: true });
  }

  unreachable() {
    this.#set({ isReachable: false });
  }

  stream(live: Live, nextTry: number | null = null) {
    this.#set(live === "live" ? { live, nextTry: null, isReachable: true } : { live, nextTry });
  }

  #set(change: Partial<Connection>) {
    const now = { ...this.#now, ...change };
    if (now.isReachable === this.#now.isReachable && now.live === this.#now.live && now.nextTry === this.#now.nextTry) {
      return;
    }
    this.#now = now;
    for (const listener of this.#listeners) listener();
  }
}

export const connection = new Watch();

export function useConnection(): Connection {
  return useSyncExternalStore(connection.subscribe, connection.get, connection.get);
}
