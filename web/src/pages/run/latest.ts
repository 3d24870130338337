/**
 * Asks for one thing at a time, always the newest that is wanted: a slider that is dragged wants sixty moments a second, and gets as
 * many as there is time for.
 *
 * Law: at most one request is under way. One that is no longer wanted and has taken longer than `patience` is aborted. Answers come
 * in the order in which they were asked for.
 */
export interface Asking<Wanted, Answer> {
  ask: (wanted: Wanted, signal: AbortSignal) => Promise<Answer>;
  answered: (wanted: Wanted, answer: Answer) => void;
  failed: (wanted: Wanted, error: unknown) => void;
  /** In milliseconds. */
  patience?: number;
  /** Between the beginnings of two requests, in milliseconds. */
  apart?: number;
}

export class Latest<Wanted, Answer> {
  readonly #asking: Asking<Wanted, Answer>;
  #underWay: { wanted: Wanted; abort: AbortController; since: number } | null = null;
  #next: { wanted: Wanted } | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #last = Number.NEGATIVE_INFINITY;

  constructor(asking: Asking<Wanted, Answer>) {
    this.#asking = asking;
  }

  get isBusy(): boolean {
    return this.#underWay !== null || this.#next !== null;
  }

  want(wanted: Wanted) {
    this.#next = { wanted };
    this.#look();
  }

  stop() {
    clearTimeout(this.#timer);
    this.#next = null;
    const before = this.#underWay;
    this.#underWay = null;
    before?.abort.abort();
  }

  #look() {
    clearTimeout(this.#timer);
    if (this.#next === null) return;
    const now = performance.now();
    const patience = this.#asking.patience ?? 300;
    if (this.#underWay !== null) {
      const left = this.#underWay.since + patience - now;
      if (left > 0) {
        this.#timer = setTimeout(() => this.#look(), left);
        return;
      }
      const before = this.#underWay;
      this.#underWay = null;
      before.abort.abort();
    }
    const wait = this.#last + (this.#asking.apart ?? 0) - now;
    if (wait > 0) {
      this.#timer = setTimeout(() => this.#look(), wait);
      return;
    }
    const { wanted } = this.#next;
    this.#next = null;
    void this.#start(wanted, now);
  }

  async #start(wanted: Wanted, now: number) {
    const one = { wanted, abort: new AbortController(), since: now };
    this.#underWay = one;
    this.#last = now;
    try {
      const answer = await this.#asking.ask(wanted, one.abort.signal);
      if (this.#underWay !== one) return;
      this.#underWay = null;
      this.#asking.answered(wanted, answer);
    } catch (error) {
      if (this.#underWay !== one) return;
      this.#underWay = null;
      this.#asking.failed(wanted, error);
    }
    this.#look();
  }
}
