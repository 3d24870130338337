/** The state of a run at the moment that is shown: the latest of a run that is followed, or that right after an event. */
import { replaceEqualDeep } from "@tanstack/react-query";
import { useEffect, useState, useSyncExternalStore } from "react";
import { ApiError, answered, api } from "@/api/client";
import { serverClock } from "./clock";
import type { Moment } from "./context";
import { Latest } from "./latest";

export interface Wanted {
  run: string;
  scope: string;
  at: number | null;
}

export interface Shown {
  /** What was asked for last; `moment` may still be the one before it. */
  wanted: Wanted | null;
  moment: Moment | undefined;
  error: unknown;
}

const MOST_KEPT = 40;
/** At most four repaints a second while a run is followed; a hand that drags the slider sees more. */
const APART_LIVE_MS = 250;
const APART_DRAGGED_MS = 33;
const APART_READING_MS = 120;
const APART_COUNTING_MS = 1000;
const AGAIN_MS = 3000;

const keyOf = (wanted: Wanted) => JSON.stringify([wanted.run, wanted.scope, wanted.at]);
const sameExecution = (one: Wanted | null, other: Wanted) => one?.run === other.run && one.scope === other.scope;

/** Rows that a component makes, and why a step waits for a worker, change without an event; a task that runs has events of its own. */
const isCounting = (moment: Moment) =>
  moment.is_live && Object.values(moment.nodes).some((node) => node.status === "running" && node.task === null);

export class Moments {
  #shown: Shown = { wanted: null, moment: undefined, error: null };
  readonly #listeners = new Set<() => void>();
  /** Moments of the past do not change: stepping back and forth need not ask for them again. */
  readonly #kept = new Map<string, Moment>();
  readonly #latest: Latest<Wanted, Moment>;
  #newest = 0;
  #status = "";
  #timer: ReturnType<typeof setTimeout> | undefined;
  #begun = Number.NEGATIVE_INFINITY;

  constructor(ask: (wanted: Wanted, signal: AbortSignal) => Promise<Moment>) {
    this.#latest = new Latest({
      ask: (wanted, signal) => {
        this.#begun = performance.now();
        return ask(wanted, signal);
      },
      answered: (wanted, moment) => this.#take(wanted, moment),
      failed: (wanted, error) => this.#fail(wanted, error),
      apart: APART_DRAGGED_MS,
    });
  }

  get = (): Shown => this.#shown;

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  want(wanted: Wanted) {
    const before = this.#shown.wanted;
    if (before !== null && keyOf(before) === keyOf(wanted) && this.#shown.error === null) return;
    const isOther = before !== null && !sameExecution(before, wanted);
    clearTimeout(this.#timer);
    if (isOther) this.#latest.stop();
    if (before !== null && before.run !== wanted.run) {
      this.#kept.clear();
      this.#newest = 0;
    }
    this.#set({ wanted, moment: isOther ? undefined : this.#shown.moment, error: isOther ? null : this.#shown.error });
    const kept = this.#kept.get(keyOf(wanted));
    if (kept !== undefined) {
      this.#latest.stop();
      this.#take(wanted, kept);
    } else this.#latest.want(wanted);
  }

  /** The run has gone on to this event and has this status: one that crashed has no event that says so. */
  tick(seq: number, status: string) {
    this.#newest = Math.max(this.#newest, seq);
    const isTold = status === this.#status;
    this.#status = status;
    const { wanted, moment } = this.#shown;
    if (wanted === null || wanted.at !== null) return;
    if (!isTold && moment !== undefined && moment.status !== status && moment.seq <= seq) this.refresh();
    else if (moment === undefined || moment.seq < this.#newest) this.#again(wanted, APART_LIVE_MS);
  }

  /** Asks once more for what is shown, without waiting for an answer that does not come. */
  refresh() {
    const { wanted } = this.#shown;
    if (wanted !== null) this.#latest.want(wanted);
  }

  /** Nobody looks any more; what is wanted next is asked for, whatever it is. */
  stop() {
    clearTimeout(this.#timer);
    this.#latest.stop();
    this.#shown = { ...this.#shown, wanted: null };
  }

  #again(wanted: Wanted, apart: number) {
    clearTimeout(this.#timer);
    const wait = this.#begun + apart - performance.now();
    if (wait <= 0 && !this.#latest.isBusy) this.#latest.want(wanted);
    else
      this.#timer = setTimeout(() => this.#shown.wanted === wanted && this.#again(wanted, apart), Math.max(20, wait));
  }

  #take(wanted: Wanted, moment: Moment) {
    serverClock.heard(moment.now);
    const now = this.#shown.wanted;
    if (now === null || !sameExecution(now, wanted)) return;
    const isWhole = moment.folded_to >= Math.min(wanted.at ?? moment.last_seq, moment.last_seq);
    if (wanted.at !== null && isWhole) this.#keep(wanted, moment);
    // One on the way to what is wanted now is shown, too: a slider that is dragged has something to show.
    const isOvertaken = wanted.at === null && now.at !== null;
    if (isOvertaken) return;
    this.#newest = Math.max(this.#newest, moment.last_seq);
    // What has not changed stays the same object, so that only what has changed is drawn again.
    this.#set({ wanted: now, moment: replaceEqualDeep(this.#shown.moment, moment), error: null });
    // A long run is read by the server piece by piece: each answer is further on.
    if (!isWhole && now === wanted) this.#again(now, APART_READING_MS);
    else if (now.at === null && wanted.at === null) {
      if (moment.seq < this.#newest) this.#again(now, APART_LIVE_MS);
      else if (isCounting(moment)) this.#again(now, APART_COUNTING_MS);
    }
  }

  #fail(wanted: Wanted, error: unknown) {
    if (this.#shown.wanted !== wanted) return;
    this.#set({ ...this.#shown, error });
    // A refusal stays one; a server that is away is asked until it is back.
    if (error instanceof ApiError && error.status < 500) return;
    this.#timer = setTimeout(() => this.#shown.wanted === wanted && this.#latest.want(wanted), AGAIN_MS);
  }

  #keep(wanted: Wanted, moment: Moment) {
    const key = keyOf(wanted);
    this.#kept.delete(key);
    this.#kept.set(key, moment);
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= MOST_KEPT) break;
      this.#kept.delete(oldest);
    }
  }

  #set(shown: Shown) {
    this.#shown = shown;
    for (const listener of this.#listeners) listener();
  }
}

const askMoment = ({ run, scope, at }: Wanted, signal: AbortSignal): Promise<Moment> =>
  answered(
    api.GET("/api/executions/{run}/moment", {
      params: { path: { run }, query: { scope, ...(at !== null && { at }) } },
      signal,
    }),
  );

export function useMoments(run: string, scope: string, at: number | null): Shown & { source: Moments } {
  const [source] = useState(() => new Moments(askMoment));
  const shown = useSyncExternalStore(source.subscribe, source.get);
  useEffect(() => source.want({ run, scope, at }), [source, run, scope, at]);
  useEffect(() => () => source.stop(), [source]);
  return { ...shown, source };
}
