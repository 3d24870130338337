/**
 * Events by their sequence, of a log of any length: pages are fetched when they come into sight, and the least recently used go.
 *
 * Law: page `n` holds the events `n * size + 1` to `(n + 1) * size`. A page that ended before the log did is fetched again once the
 * log has grown into it.
 */
import type { Envelope, EventPage } from "./event";

export interface PageRequest {
  after: number;
  limit: number;
  signal: AbortSignal;
}

interface Page {
  events: ReadonlyMap<number, Envelope>;
  /** The last event of the log when it was fetched, if that lay in this page. */
  until: number;
}

export class EventPages {
  readonly size: number;
  readonly most: number;
  readonly #load: (request: PageRequest) => Promise<EventPage>;
  /** In order of use, the latest last. */
  readonly #pages = new Map<number, Page>();
  readonly #loading = new Map<number, AbortController>();
  readonly #failed = new Map<number, unknown>();
  readonly #listeners = new Set<() => void>();
  #last = 0;
  #version = 0;

  constructor(load: (request: PageRequest) => Promise<EventPage>, size = 200, most = 40) {
    this.#load = load;
    this.size = size;
    this.most = most;
  }

  /** Changes whenever something that was shown may have changed. */
  version = (): number => this.#version;

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  get error(): unknown {
    return this.#failed.values().next().value ?? null;
  }

  get loaded(): number {
    return this.#pages.size;
  }

  /** The log has grown this far. */
  grown(last: number) {
    if (last > this.#last) this.#last = last;
  }

  get(seq: number): Envelope | undefined {
    return this.#pages.get(this.#number(seq))?.events.get(seq);
  }

  /** All that is there now, in no particular order of pages. */
  *all(): Iterable<Envelope> {
    for (const page of this.#pages.values()) yield* page.events.values();
  }

  /** Fetches what is missing of a range, and gives up what is being fetched for elsewhere. */
  want(first: number, last: number) {
    const wanted = new Set<number>();
    for (let page = this.#number(Math.max(1, first)); page <= this.#number(Math.max(1, last)); page += 1)
      wanted.add(page);
    for (const [page, request] of this.#loading) {
      if (wanted.has(page)) continue;
      this.#loading.delete(page);
      request.abort();
    }
    for (const page of wanted) {
      const found = this.#pages.get(page);
      if (found !== undefined) {
        this.#pages.delete(page);
        this.#pages.set(page, found);
      }
      if (!this.#isWhole(page, found)) void this.#fetch(page);
    }
  }

  /** One event, fetched if need be. */
  async one(seq: number): Promise<Envelope | undefined> {
    const found = this.get(seq);
    if (found !== undefined) return found;
    await this.#fetch(this.#number(seq));
    return this.get(seq);
  }

  retry() {
    const failed = [...this.#failed.keys()];
    this.#failed.clear();
    this.#changed();
    for (const page of failed) void this.#fetch(page);
  }

  #number(seq: number): number {
    return Math.floor((seq - 1) / this.size);
  }

  #isWhole(number: number, page: Page | undefined): boolean {
    if (page === undefined) return false;
    return page.until >= Math.min(this.#last, (number + 1) * this.size);
  }

  async #fetch(number: number) {
    if (this.#loading.has(number) || this.#failed.has(number)) return;
    const request = new AbortController();
    this.#loading.set(number, request);
    const asked = this.#last;
    try {
      const got = await this.#load({ after: number * this.size, limit: this.size, signal: request.signal });
      const events = new Map(got.events.map((event) => [event.seq, event]));
      const end = got.events.at(-1)?.seq ?? number * this.size;
      // A page with a gap is whole all the same: nothing more will come into it.
      const until = got.next !== null ? (number + 1) * this.size : Math.max(end, Math.min(asked, got.last_seq));
      this.#pages.set(number, { events, until });
      this.grown(got.last_seq);
      while (this.#pages.size > this.most) this.#pages.delete(this.#pages.keys().next().value as number);
    } catch (error) {
      if (request.signal.aborted) return;
      this.#failed.set(number, error);
    } finally {
      if (this.#loading.get(number) === request) this.#loading.delete(number);
    }
    this.#changed();
  }

  #changed() {
    this.#version += 1;
    for (const listener of this.#listeners) listener();
  }
}
