/**
 * The connection to `GET /api/stream`.
 *
 * Law: it is the only place that knows positions. Whenever it connects, for whatever reason, it says of every run how far it has
 * been told, so nothing is missed and nothing is told twice. Losing the connection, and asking for other runs, are the same thing to it.
 */
import { ApiError } from "@/api/errors";
import type { Run, State, Tick } from "./messages";
import { type Message, SseParser } from "./sse";

export interface Wanted {
  runs: boolean;
  executions: readonly string[];
}

export type StreamEvent = { type: "tick"; tick: Tick } | { type: "run"; run: Run } | { type: "state"; state: State };

export interface World {
  fetch: (url: string, init: RequestInit) => Promise<Response>;
  now: () => number;
  random: () => number;
}

/** The server sends a comment every 15 s when it has nothing to say. */
export const SILENCE_MS = 40_000;
export const FIRST_MS = 500;
export const LONGEST_MS = 15_000;
/** Pages that come and go change what is wanted several times in a row. */
const SETTLE_MS = 30;
/** More than the server follows in one stream makes it refuse all of them. */
export const MOST_EXECUTIONS = 100;
const MOST_KEPT = 1000;

const world: World = { fetch: (url, init) => fetch(url, init), now: () => Date.now(), random: () => Math.random() };

export class Stream {
  readonly #emit: (event: StreamEvent) => void;
  readonly #world: World;
  #wanted: Wanted = { runs: false, executions: [] };
  #ticks = new Map<string, Tick>();
  #runs = new Map<string, string>();
  #connection: AbortController | null = null;
  #failures = 0;
  #next: ReturnType<typeof setTimeout> | undefined;
  #silence: ReturnType<typeof setTimeout> | undefined;

  constructor(emit: (event: StreamEvent) => void, given: World = world) {
    this.#emit = emit;
    this.#world = given;
  }

  /** What was told before, by another holder of the connection. */
  seed(ticks: readonly Tick[]) {
    for (const tick of ticks) {
      if (tick.seq >= (this.#ticks.get(tick.execution_id)?.seq ?? 0)) this.#ticks.set(tick.execution_id, tick);
    }
  }

  want(wanted: Wanted) {
    const executions = wanted.executions.slice(0, MOST_EXECUTIONS);
    const same = new Set(this.#wanted.executions);
    const isSame = executions.length === same.size && executions.every((one) => same.has(one));
    if (isSame && wanted.runs === this.#wanted.runs && (this.#connection !== null || this.#next !== undefined)) return;
    this.#wanted = { runs: wanted.runs, executions };
    this.#connectIn(SETTLE_MS);
  }

  /** Tries at once: the machine is online again, or somebody has signed in. */
  again() {
    this.#failures = 0;
    this.#connectIn(0);
  }

  close() {
    clearTimeout(this.#next);
    clearTimeout(this.#silence);
    this.#next = undefined;
    this.#connection?.abort();
    this.#connection = null;
  }

  #connectIn(ms: number) {
    clearTimeout(this.#next);
    this.#next = setTimeout(() => {
      this.#next = undefined;
      void this.#connect();
    }, ms);
  }

  async #connect() {
    this.#connection?.abort();
    const own = new AbortController();
    this.#connection = own;
    if (this.#failures === 0) this.#say("connecting");
    this.#listen(own);
    try {
      await this.#read(own);
    } catch (error) {
      if (this.#connection !== own) return;
      if (error instanceof ApiError && this.#isFinal(error)) return;
    }
    if (this.#connection === own) this.#lost();
  }

  async #read(own: AbortController) {
    const { executions, runs } = this.#wanted;
    const query = new URLSearchParams({ ticks: "true", ...(runs && { runs: "true" }) });
    for (const one of executions) query.append("execution", one);
    const answer = await this.#world.fetch(`/api/stream?${query}`, {
      headers: executions.length > 0 ? { "Last-Event-ID": executions.map((one) => this.#position(one)).join(".") } : {},
      credentials: "same-origin",
      cache: "no-store",
      signal: own.signal,
    });
    if (!answer.ok || answer.body === null) {
      throw ApiError.of(answer.status, await answer.json().catch(() => null));
    }
    let isFirst = true;
    const parser = new SseParser();
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done || this.#connection !== own) return;
      this.#listen(own);
      this.#failures = 0;
      if (isFirst) this.#say("live");
      isFirst = false;
      for (const message of parser.push(value)) this.#heard(message);
    }
  }

  /** Whoever is silent for too long is gone, even if the connection looks open. */
  #listen(own: AbortController) {
    clearTimeout(this.#silence);
    this.#silence = setTimeout(() => own.abort(), SILENCE_MS);
  }

  #position(execution: string): string {
    const told = this.#ticks.get(execution);
    return `${told?.seq ?? 0}-${told?.lines ?? 0}`;
  }

  #heard(message: Message) {
    const data = parsed(message.data);
    if (data === null || typeof data.execution_id !== "string") return;
    if (message.event === "run") this.#run(data.execution_id, message.data, data);
    else if (message.event === "tick" || message.event === "status") this.#tick(data.execution_id, data);
  }

  #tick(id: string, data: Record<string, unknown>) {
    const before = this.#ticks.get(id);
    const tick: Tick = {
      execution_id: id,
      seq: Math.max(Number(data.seq) || 0, before?.seq ?? 0),
      status: String(data.status),
      lines: Math.max(Number(data.lines) || 0, before?.lines ?? 0),
    };
    if (before !== undefined && sameTick(before, tick)) return;
    this.#ticks.delete(id);
    this.#ticks.set(id, tick);
    forget(this.#ticks, MOST_KEPT);
    this.#emit({ type: "tick", tick });
  }

  #run(id: string, text: string, data: Record<string, unknown>) {
    // After each connection the server lists the newest runs anew: only what differs is news.
    if (this.#runs.get(id) === text) return;
    this.#runs.delete(id);
    this.#runs.set(id, text);
    forget(this.#runs, MOST_KEPT);
    this.#emit({ type: "run", run: data as unknown as Run });
  }

  /** Whether it is of no use to try the same again. */
  #isFinal(error: ApiError): boolean {
    if (error.status === 401 || error.status === 403) {
      this.close();
      this.#say("off");
      return true;
    }
    if (error.status !== 404) return false;
    // One run that was deleted must not take the others' news away.
    const gone = this.#wanted.executions.find((one) => error.message.includes(`\`${one}\``));
    if (gone === undefined) return false;
    this.#tick(gone, { status: "deleted" });
    this.#wanted = { ...this.#wanted, executions: this.#wanted.executions.filter((one) => one !== gone) };
    if (this.#wanted.executions.length > 0 || this.#wanted.runs) this.#connectIn(0);
    else this.close();
    return true;
  }

  #lost() {
    clearTimeout(this.#silence);
    this.#connection = null;
    const most = Math.min(FIRST_MS * 2 ** this.#failures, LONGEST_MS);
    const wait = Math.round(most * (0.75 + this.#world.random() / 4));
    // The first time is often a server that restarts, or a machine that wakes up.
    this.#say(this.#failures === 0 ? "connecting" : "lost", this.#world.now() + wait);
    this.#failures += 1;
    this.#connectIn(wait);
  }

  #say(live: State["live"], nextTry: number | null = null) {
    this.#emit({ type: "state", state: { live, nextTry } });
  }
}

export function sameTick(one: Tick, other: Tick): boolean {
  return one.seq === other.seq && one.status === other.status && one.lines === other.lines;
}

function parsed(text: string): Record<string, unknown> | null {
  try {
    const data: unknown = JSON.parse(text);
    return typeof data === "object" && data !== null ? (data as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

function forget(kept: Map<string, unknown>, most: number) {
  if (kept.size <= most) return;
  const oldest = kept.keys().next().value;
  if (oldest !== undefined) kept.delete(oldest);
}
