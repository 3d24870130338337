/**
 * What the code of a run printed, fetched from the beginning on and kept up with while the run goes.
 *
 * Law: at most `most` lines are kept, the latest. `cut` says how many there were before them.
 */
import type { components } from "@/api/schema";

export type Line = components["schemas"]["LineOut"];
export type LinePage = components["schemas"]["LinePageOut"];

export interface LineRequest {
  after: number;
  limit: number;
  signal: AbortSignal;
}

export interface Lines {
  readonly lines: readonly Line[];
  /** How many of the first lines are no longer kept. */
  readonly cut: number;
  readonly isLoading: boolean;
  /** Whether the end has been reached once. */
  readonly isReady: boolean;
  readonly error: unknown;
}

export const MOST_LINES = 100_000;
const BATCH = 1000;

export class LineStore {
  readonly #load: (request: LineRequest) => Promise<LinePage>;
  readonly #most: number;
  readonly #listeners = new Set<() => void>();
  #now: Lines = { lines: [], cut: 0, isLoading: false, isReady: false, error: null };
  #after = 0;
  #running: AbortController | null = null;

  /** `start`: how many of the first lines are not asked for at all. */
  constructor(load: (request: LineRequest) => Promise<LinePage>, start = 0, most = MOST_LINES) {
    this.#load = load;
    this.#most = most;
    this.#after = start;
    this.#now = { ...this.#now, cut: start };
  }

  get = (): Lines => this.#now;

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Fetches what has been printed since. */
  async more() {
    if (this.#running !== null) return;
    const running = new AbortController();
    this.#running = running;
    if (!this.#now.isReady) this.#set({ isLoading: true, error: null });
    try {
      for (;;) {
        const page = await this.#load({ after: this.#after, limit: BATCH, signal: running.signal });
        if (running.signal.aborted) return;
        this.#take(page.lines);
        if (page.next === null) break;
        this.#after = Math.max(this.#after, page.next);
      }
      if (this.#now.isLoading || !this.#now.isReady || this.#now.error !== null)
        this.#set({ isLoading: false, isReady: true, error: null });
    } catch (error) {
      if (!running.signal.aborted) this.#set({ isLoading: false, error });
    } finally {
      if (this.#running === running) this.#running = null;
    }
  }

  stop() {
    this.#running?.abort();
    this.#running = null;
  }

  #take(got: readonly Line[]) {
    const fresh = got.filter((line) => line.number > this.#after);
    if (fresh.length === 0) return;
    this.#after = fresh.at(-1)?.number ?? this.#after;
    const all = [...this.#now.lines, ...fresh];
    // Dropping a tenth at a time keeps the copying rare.
    const over = all.length > this.#most * 1.1 ? all.length - this.#most : 0;
    this.#set({ lines: over > 0 ? all.slice(over) : all, cut: this.#now.cut + over });
  }

  #set(change: Partial<Lines>) {
    this.#now = { ...this.#now, ...change };
    for (const listener of this.#listeners) listener();
  }
}

/** Those that were said by then. Lines of tasks that run side by side are only roughly in the order of their times. */
export function saidBy(lines: readonly Line[], ts: number): readonly Line[] {
  return lines.filter((line) => line.ts <= ts);
}

/** Where a text occurs, whatever its case; as [start, end) pairs. */
export function occurrences(text: string, wanted: string): [number, number][] {
  if (wanted === "") return [];
  const found: [number, number][] = [];
  const low = text.toLowerCase();
  const word = wanted.toLowerCase();
  // Some letters change their length with their case; then positions would not fit.
  if (low.length !== text.length) return [];
  for (let at = low.indexOf(word); at >= 0; at = low.indexOf(word, at + word.length))
    found.push([at, at + word.length]);
  return found;
}
