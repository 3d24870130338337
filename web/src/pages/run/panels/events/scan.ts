/** Looks through a log for events that match a filter, request by request, until enough are found, the end is reached, or it is stopped. */
import type { Envelope, EventPage } from "./event";

export interface EventFilter {
  types: readonly string[];
  place: string;
  text: string;
}

export const NO_FILTER: EventFilter = { types: [], place: "", text: "" };

export function isFiltering(filter: EventFilter): boolean {
  return filter.types.length > 0 || filter.place !== "" || filter.text !== "";
}

export interface Scanned {
  readonly found: readonly Envelope[];
  /** How far the log has been looked through. */
  readonly position: number;
  readonly last: number;
  readonly state: "running" | "enough" | "stopped" | "end" | "failed";
  readonly error: unknown;
}

export interface ScanRequest {
  after: number;
  limit: number;
  filter: EventFilter;
  signal: AbortSignal;
}

export class EventScan {
  readonly filter: EventFilter;
  readonly #load: (request: ScanRequest) => Promise<EventPage>;
  readonly #batch: number;
  readonly #listeners = new Set<() => void>();
  readonly #found: Envelope[] = [];
  #wanted = 0;
  #now: Scanned = { found: [], position: 0, last: 0, state: "enough", error: null };
  #running: AbortController | null = null;

  constructor(filter: EventFilter, load: (request: ScanRequest) => Promise<EventPage>, batch = 200) {
    this.filter = filter;
    this.#load = load;
    this.#batch = batch;
  }

  get = (): Scanned => this.#now;

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Goes on until this many have been found. A scan that was stopped by hand goes on only when `isAsked`. */
  until(count: number, isAsked = false) {
    this.#wanted = Math.max(this.#wanted, count);
    if (this.#running !== null || this.#now.state === "end") return;
    if (!isAsked && (this.#now.state === "stopped" || this.#now.state === "failed")) return;
    if (this.#found.length >= this.#wanted) return;
    void this.#run();
  }

  /** The log has grown: what came may match. */
  grown(last: number) {
    if (last <= this.#now.last && this.#now.state !== "end") return;
    if (last <= this.#now.position) return;
    if (this.#now.state === "end") {
      this.#set({ last, state: "enough" });
      this.#wanted = Math.max(this.#wanted, this.#found.length + this.#batch);
      this.until(this.#wanted);
    } else this.#set({ last });
  }

  stop() {
    this.#running?.abort();
    this.#running = null;
    if (this.#now.state === "running") this.#set({ state: "stopped" });
  }

  async #run() {
    const running = new AbortController();
    this.#running = running;
    this.#set({ state: "running", error: null });
    try {
      while (this.#found.length < this.#wanted) {
        const page = await this.#load({
          after: this.#now.position,
          limit: this.#batch,
          filter: this.filter,
          signal: running.signal,
        });
        if (running.signal.aborted) return;
        this.#found.push(...page.events);
        const position = page.next ?? page.last_seq;
        const isStuck = page.next !== null && page.next <= this.#now.position;
        this.#set({ found: [...this.#found], position, last: page.last_seq });
        if (page.next === null || isStuck) {
          this.#running = null;
          this.#set({ state: "end" });
          return;
        }
      }
      // Whoever hears of it may ask for more at once.
      this.#running = null;
      this.#set({ state: "enough" });
    } catch (error) {
      if (!running.signal.aborted) this.#set({ state: "failed", error });
    } finally {
      if (this.#running === running) this.#running = null;
    }
  }

  #set(change: Partial<Scanned>) {
    this.#now = { ...this.#now, ...change };
    for (const listener of this.#listeners) listener();
  }
}
