/** One tab's side: what the components on its page want together, and what they were told last. */
import { connection } from "@/api/connection";
import { type Link, linked, type Receive } from "./links";
import type { Run, Tick, ToTab } from "./messages";
import { sameTick } from "./stream";

const PING_MS = 30_000;

export class TabSide {
  readonly #connect: (receive: Receive) => Link;
  readonly #ticks = new Map<string, Tick>();
  readonly #watchers = new Map<string, Set<(tick: Tick) => void>>();
  readonly #feeds = new Set<(runs: readonly Run[]) => void>();
  #runs: ReadonlyMap<string, Run> = new Map();
  #link: Link | null = null;
  #isAsking = false;
  #asked = "";
  #ping: ReturnType<typeof setInterval> | undefined;

  constructor(connect: (receive: Receive) => Link = linked) {
    this.#connect = connect;
  }

  /** Begins: from now on the top bar knows whether the server is there. */
  start() {
    if (this.#link !== null) return;
    this.#link = this.#connect((message) => this.#receive(message));
    this.#ping = setInterval(() => this.#link?.send({ type: "ping" }), PING_MS);
    this.resume();
  }

  stop() {
    clearInterval(this.#ping);
    this.#link?.send({ type: "bye" });
    this.#link?.close();
    this.#link = null;
  }

  /** The tab goes into the back/forward cache, or for good. */
  pause() {
    this.#link?.send({ type: "bye" });
  }

  resume() {
    this.#asked = "";
    this.#ask();
  }

  again() {
    this.#link?.send({ type: "again" });
  }

  tick(execution: string): Tick | null {
    return this.#ticks.get(execution) ?? null;
  }

  runs(): ReadonlyMap<string, Run> {
    return this.#runs;
  }

  watch(execution: string, watcher: (tick: Tick) => void): () => void {
    const watchers = this.#watchers.get(execution) ?? new Set();
    this.#watchers.set(execution, watchers.add(watcher));
    if (watchers.size === 1) this.#ask();
    return () => {
      watchers.delete(watcher);
      if (watchers.size > 0 || this.#watchers.get(execution) !== watchers) return;
      this.#watchers.delete(execution);
      this.#ask();
    };
  }

  feed(listener: (runs: readonly Run[]) => void): () => void {
    this.#feeds.add(listener);
    if (this.#feeds.size === 1) this.#ask();
    return () => {
      this.#feeds.delete(listener);
      if (this.#feeds.size === 0) this.#ask();
    };
  }

  /** Once for all that changes in one turn: pages that follow each other unsubscribe and subscribe. */
  #ask() {
    if (this.#isAsking || this.#link === null) return;
    this.#isAsking = true;
    queueMicrotask(() => {
      this.#isAsking = false;
      const executions = [...this.#watchers.keys()];
      const runs = this.#feeds.size > 0;
      const asked = JSON.stringify([runs, executions]);
      if (asked === this.#asked) return;
      this.#asked = asked;
      const ticks = executions.flatMap((one) => this.#ticks.get(one) ?? []);
      this.#link?.send({ type: "want", runs, executions, ticks });
    });
  }

  #receive(message: ToTab) {
    if (message.type === "who") this.resume();
    else if (message.type === "state") connection.stream(message.state.live, message.state.nextTry);
    else this.#news(message.ticks, message.runs);
  }

  #news(ticks: readonly Tick[], runs: readonly Run[]) {
    for (const tick of ticks) {
      const before = this.#ticks.get(tick.execution_id);
      // A new holder of the connection may know less than the one before it.
      if (before !== undefined && (sameTick(before, tick) || tick.seq < before.seq)) continue;
      this.#ticks.set(tick.execution_id, tick);
      for (const watcher of this.#watchers.get(tick.execution_id) ?? []) watcher(tick);
    }
    if (runs.length === 0) return;
    this.#runs = new Map([...this.#runs, ...runs.map((run) => [run.execution_id, run] as const)]);
    for (const listener of this.#feeds) listener(runs);
  }
}
