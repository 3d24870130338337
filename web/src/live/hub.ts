/**
 * The holder of the connection: in a SharedWorker, or in the tab that leads. It asks the server for what all tabs want together, and
 * hands news out at most four times a second: of counters the last value counts.
 */
import type { FromTab, Run, State, Tick, ToTab } from "./messages";
import { Stream, type StreamEvent, type World } from "./stream";

export const PACE_MS = 250;
/** A tab in the background may ping only once a minute. */
export const GONE_MS = 200_000;

interface Tab {
  runs: boolean;
  executions: ReadonlySet<string>;
  heardAt: number;
}

export class Hub {
  readonly #post: (tab: string, message: ToTab) => void;
  readonly #stream: Stream;
  readonly #tabs = new Map<string, Tab>();
  readonly #ticks = new Map<string, Tick>();
  readonly #runs = new Map<string, Run>();
  readonly #newTicks = new Map<string, Tick>();
  readonly #newRuns = new Map<string, Run>();
  #state: State = { live: "connecting", nextTry: null };
  #flushedAt = Number.NEGATIVE_INFINITY;
  #flushing: ReturnType<typeof setTimeout> | undefined;

  constructor(post: (tab: string, message: ToTab) => void, world?: World) {
    this.#post = post;
    this.#stream = new Stream((event) => this.#heard(event), world);
  }

  receive(tab: string, message: FromTab) {
    const known = this.#tabs.get(tab);
    if (known !== undefined) known.heardAt = Date.now();
    if (message.type === "want") this.#want(tab, message);
    else if (message.type === "bye" && this.#tabs.delete(tab)) this.#ask();
    else if (message.type === "again") this.#stream.again();
    else if (message.type === "ping" && known === undefined) this.#post(tab, { type: "who" });
  }

  close() {
    clearTimeout(this.#flushing);
    this.#stream.close();
  }

  #want(tab: string, message: FromTab & { type: "want" }) {
    const before = this.#tabs.get(tab);
    const now = { runs: message.runs, executions: new Set(message.executions), heardAt: Date.now() };
    this.#tabs.set(tab, now);
    const told = message.ticks.filter((tick) => tick.seq > (this.#ticks.get(tick.execution_id)?.seq ?? -1));
    for (const tick of told) this.#ticks.set(tick.execution_id, tick);
    this.#stream.seed(told);
    if (this.#state.live === "off") this.#stream.again();
    this.#ask();
    // Whoever comes later gets what is known already: the server tells it only once.
    const ticks = [...now.executions]
      .filter((one) => !before?.executions.has(one))
      .flatMap((one) => this.#ticks.get(one) ?? []);
    const runs = now.runs && !before?.runs ? [...this.#runs.values()] : [];
    if (ticks.length + runs.length > 0) this.#post(tab, { type: "news", ticks, runs });
    this.#post(tab, { type: "state", state: this.#state });
  }

  #ask() {
    const latest = Date.now() - GONE_MS;
    for (const [name, tab] of this.#tabs) if (tab.heardAt < latest) this.#tabs.delete(name);
    const all = [...this.#tabs.values()];
    if (all.length === 0) {
      this.#stream.close();
      return;
    }
    // The newest first: there is room for so many.
    const executions = [...new Set(all.reverse().flatMap((tab) => [...tab.executions].reverse()))];
    // A stream about nothing is refused; with the list of runs the state of the connection is known on every page.
    this.#stream.want({ executions, runs: executions.length === 0 || all.some((tab) => tab.runs) });
  }

  #heard(event: StreamEvent) {
    if (event.type === "state") {
      this.#state = event.state;
      for (const tab of this.#tabs.keys()) this.#post(tab, event);
      return;
    }
    if (event.type === "tick") {
      this.#ticks.set(event.tick.execution_id, event.tick);
      this.#newTicks.set(event.tick.execution_id, event.tick);
    } else {
      this.#runs.delete(event.run.execution_id);
      this.#runs.set(event.run.execution_id, event.run);
      this.#newRuns.set(event.run.execution_id, event.run);
      if (this.#runs.size > 1000) this.#runs.delete(this.#runs.keys().next().value ?? "");
    }
    this.#flushing ??= setTimeout(() => this.#flush(), Math.max(0, this.#flushedAt + PACE_MS - Date.now()));
  }

  #flush() {
    this.#flushing = undefined;
    this.#flushedAt = Date.now();
    for (const [name, tab] of this.#tabs) {
      const ticks = [...this.#newTicks.values()].filter((tick) => tab.executions.has(tick.execution_id));
      const runs = tab.runs ? [...this.#newRuns.values()] : [];
      if (ticks.length + runs.length > 0) this.#post(name, { type: "news", ticks, runs });
    }
    this.#newTicks.clear();
    this.#newRuns.clear();
  }
}
