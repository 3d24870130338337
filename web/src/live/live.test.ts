import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { connection } from "@/api/connection";
import { PACE_MS } from "./hub";
import { alone, type Channel, elected, type Locks } from "./links";
import type { Run, Tick } from "./messages";
import { SseParser } from "./sse";
import { FIRST_MS, LONGEST_MS, SILENCE_MS, type World } from "./stream";
import { TabSide } from "./tab";

/** A server in memory: keeps every stream that was opened, and what was asked for. */
class Server {
  readonly streams: Asked[] = [];
  refuse: { status: number; message: string } | "away" | null = null;

  readonly world: World = {
    now: () => Date.now(),
    random: () => 1,
    fetch: (url, init) => {
      const query = new URLSearchParams(url.split("?")[1]);
      const position = new Headers(init.headers).get("Last-Event-ID");
      const one = new Asked(
        query.getAll("execution"),
        query.get("runs") === "true",
        position,
        init.signal as AbortSignal,
      );
      this.streams.push(one);
      if (this.refuse === "away") return Promise.reject(new TypeError("Failed to fetch"));
      if (this.refuse !== null) {
        const body = JSON.stringify({ error: { code: "no", message: this.refuse.message, hint: null } });
        return Promise.resolve(new Response(body, { status: this.refuse.status }));
      }
      return Promise.resolve(one.response());
    },
  };

  get last(): Asked {
    const last = this.streams.at(-1);
    if (last === undefined) throw new Error("nobody has asked");
    return last;
  }

  get open(): Asked[] {
    return this.streams.filter((one) => one.isOpen);
  }
}

class Asked {
  isOpen = false;
  #to: ReadableStreamDefaultController<Uint8Array> | undefined;

  constructor(
    readonly executions: string[],
    readonly runs: boolean,
    readonly position: string | null,
    readonly signal: AbortSignal,
  ) {}

  response(): Response {
    this.isOpen = true;
    const body = new ReadableStream<Uint8Array>({
      start: (to) => {
        this.#to = to;
        this.signal.addEventListener("abort", () => {
          if (this.isOpen) to.error(new DOMException("aborted", "AbortError"));
          this.isOpen = false;
        });
      },
    });
    return new Response(body);
  }

  async say(text: string) {
    this.#to?.enqueue(new TextEncoder().encode(text));
    await settle();
  }

  start = () => this.say('retry: 1000\n\nevent: start\ndata: {"server":"s","version":"1"}\n\n');
  tick = (id: string, seq: number, status = "running", lines = 0) =>
    this.say(`id: ${seq}-${lines}\nevent: tick\ndata: ${JSON.stringify({ execution_id: id, seq, status, lines })}\n\n`);
  status = (id: string, seq: number, status: string) =>
    this.say(`event: status\ndata: ${JSON.stringify({ execution_id: id, status, seq })}\n\n`);
  run = (id: string, events: number) =>
    this.say(`event: run\ndata: ${JSON.stringify({ execution_id: id, events, status: "running" })}\n\n`);

  async end() {
    this.isOpen = false;
    this.#to?.close();
    await settle();
  }
}

async function settle(ms = 0) {
  await vi.advanceTimersByTimeAsync(ms);
  // Streams and their decoders pass a piece on by steps of their own, which no timer stands for.
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  await vi.advanceTimersByTimeAsync(0);
}

function watching(tab: TabSide, id: string): Tick[] {
  const seen: Tick[] = [];
  tab.watch(id, (tick) => seen.push(tick));
  return seen;
}

const at = (id: string, seq: number, status = "running", lines = 0): Tick => ({ execution_id: id, seq, status, lines });

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "Date"] });
});

afterEach(() => {
  vi.useRealTimers();
});

describe("parsing", () => {
  const text = ': hello\n\nid: 4.7-2\nevent: tick\ndata: {"a":1}\n\nevent: x\r\ndata: one\r\ndata:two\r\n\r\ndata\n\n';
  const whole = new SseParser().push(text);

  it("finds events, ids and several lines of data, and passes over comments", () => {
    expect(whole).toEqual([
      { event: "tick", data: '{"a":1}', id: "4.7-2" },
      { event: "x", data: "one\ntwo", id: "4.7-2" },
      { event: "message", data: "", id: "4.7-2" },
    ]);
  });

  it("finds the same wherever the text is cut", () => {
    for (let size = 1; size < 12; size += 1) {
      const parser = new SseParser();
      const found = [];
      for (let place = 0; place < text.length; place += size)
        found.push(...parser.push(text.slice(place, place + size)));
      expect(found).toEqual(whole);
    }
  });
});

describe("one tab", () => {
  let server: Server;
  let tab: TabSide;

  beforeEach(async () => {
    server = new Server();
    tab = new TabSide((receive) => alone(receive, server.world));
    tab.start();
    await settle(50);
  });

  afterEach(() => tab.stop());

  it("watches the list of runs when nothing else is wanted, so that the state of the connection is known", async () => {
    expect(server.last.runs).toBe(true);
    expect(connection.get().live).toBe("connecting");
    await server.last.start();
    expect(connection.get().live).toBe("live");
  });

  it("asks for other runs on a new connection from where it was, and closes the one before", async () => {
    const a = watching(tab, "a");
    await settle(50);
    expect(server.last.executions).toEqual(["a"]);
    expect(server.last.position).toBe("0-0");
    await server.last.tick("a", 12, "running", 3);
    const b = watching(tab, "b");
    await settle(50);
    expect(server.open).toHaveLength(1);
    expect(server.last.executions).toEqual(["b", "a"]);
    expect(server.last.position).toBe("0-0.12-3");
    await server.last.tick("b", 5);
    await settle(PACE_MS);
    expect([a, b]).toEqual([[at("a", 12, "running", 3)], [at("b", 5)]]);
  });

  it("stops asking for a run that nobody looks at any more", async () => {
    const leave = tab.watch("a", () => undefined);
    await settle(50);
    const count = server.streams.length;
    leave();
    tab.watch("a", () => undefined);
    await settle(50);
    expect(server.streams).toHaveLength(count);
  });

  it("goes on after a loss without gap or repetition", async () => {
    const seen = watching(tab, "a");
    await settle(50);
    await server.last.start();
    await server.last.tick("a", 7);
    await settle(PACE_MS);
    await server.last.end();
    await settle(FIRST_MS);
    expect(server.last.position).toBe("7-0");
    await server.last.start();
    await server.last.status("a", 7, "running");
    await server.last.tick("a", 9, "failed");
    await settle(PACE_MS);
    expect(seen).toEqual([at("a", 7), at("a", 9, "failed")]);
  });

  it("tells of a run of the list only when it has changed, also after a loss", async () => {
    const seen: Run[] = [];
    tab.feed((runs) => seen.push(...runs));
    await settle(50);
    await server.last.run("a", 1);
    await settle(PACE_MS);
    await server.last.end();
    await settle(FIRST_MS);
    await server.last.run("a", 1);
    await server.last.run("b", 1);
    await settle(PACE_MS);
    expect(seen.map((run) => run.execution_id)).toEqual(["a", "b"]);
    expect([...tab.runs().keys()]).toEqual(["a", "b"]);
  });

  it("hands out at most four times a second, and then the last value", async () => {
    const seen = watching(tab, "a");
    await settle(50);
    for (let seq = 1; seq <= 40; seq += 1) {
      await server.last.tick("a", seq);
      await settle(25);
    }
    await settle(PACE_MS);
    expect(seen.length).toBeLessThanOrEqual(6);
    expect(seen.at(-1)).toEqual(at("a", 40));
  });

  it("says that the server went away, and tries again with longer and longer pauses", async () => {
    server.refuse = "away";
    await server.last.end();
    const waits: number[] = [];
    let before = server.streams.length;
    for (let time = 0; time < 60_000; time += 100) {
      await vi.advanceTimersByTimeAsync(100);
      if (server.streams.length > before) waits.push(time);
      before = server.streams.length;
    }
    expect(connection.get().live).toBe("lost");
    expect(connection.get().nextTry).toBeGreaterThan(Date.now() - 200);
    const pauses = waits.slice(1).map((time, place) => time - (waits[place] ?? 0));
    expect(pauses[0]).toBeGreaterThan(FIRST_MS);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(LONGEST_MS + 100);
    server.refuse = null;
    tab.again();
    await settle(10);
    await server.last.start();
    expect(connection.get().live).toBe("live");
  });

  it("takes a connection for lost on which not even a heartbeat comes", async () => {
    await server.last.start();
    const first = server.last;
    await settle(SILENCE_MS - 1000);
    await first.say(": still here\n\n");
    await settle(SILENCE_MS - 1000);
    expect(first.isOpen).toBe(true);
    await settle(2000);
    expect(first.isOpen).toBe(false);
    await settle(FIRST_MS);
    expect(server.open).toHaveLength(1);
  });

  it("goes on with the other runs when one was deleted", async () => {
    const gone = watching(tab, "gone");
    server.refuse = { status: 404, message: "there is no run `gone`" };
    watching(tab, "b");
    await settle(25);
    await settle(10);
    server.refuse = null;
    await settle(50);
    expect(server.last.executions).toEqual(["b"]);
    await settle(PACE_MS);
    expect(gone).toEqual([at("gone", 0, "deleted")]);
  });

  it("does not try again when a sign-in is needed, until somebody wants something", async () => {
    server.refuse = { status: 401, message: "this needs a token" };
    await server.last.end();
    await settle(FIRST_MS);
    expect(connection.get().live).toBe("off");
    const count = server.streams.length;
    await settle(120_000);
    expect(server.streams).toHaveLength(count);
    server.refuse = null;
    watching(tab, "a");
    await settle(50);
    await server.last.start();
    expect(connection.get().live).toBe("live");
  });
});

/** The tabs of one browser: a channel that all hear, and a lock that one holds. */
class Browser {
  #channels = new Set<Channel>();
  #waiting: (() => void)[] = [];
  #isHeld = false;

  channel(): Channel {
    const own: Channel = {
      onmessage: null,
      postMessage: (letter) => {
        for (const other of this.#channels) {
          if (other !== own) queueMicrotask(() => other.onmessage?.({ data: structuredClone(letter) } as never));
        }
      },
      close: () => this.#channels.delete(own),
    };
    this.#channels.add(own);
    return own;
  }

  readonly locks: Locks = {
    request: async (_, __, held) => {
      if (this.#isHeld) await new Promise<void>((resolve) => this.#waiting.push(resolve));
      this.#isHeld = true;
      await held();
      this.#isHeld = false;
      this.#waiting.shift()?.();
    },
  };
}

describe("several tabs without a SharedWorker", () => {
  it("share one connection, and the next one goes on when the leading tab is closed", async () => {
    const server = new Server();
    const browser = new Browser();
    const open = () => {
      const tab = new TabSide((receive) => elected(receive, browser.channel(), browser.locks, server.world));
      tab.start();
      return tab;
    };
    const first = open();
    await settle(50);
    const second = open();
    const third = open();
    const a = watching(first, "a");
    const alsoA = watching(second, "a");
    const b = watching(third, "b");
    await settle(50);
    expect(server.open).toHaveLength(1);
    expect(new Set(server.last.executions)).toEqual(new Set(["a", "b"]));
    await server.last.tick("a", 4);
    await server.last.tick("b", 2);
    await settle(PACE_MS);
    expect([a, alsoA, b]).toEqual([[at("a", 4)], [at("a", 4)], [at("b", 2)]]);

    first.stop();
    await settle(100);
    expect(server.open).toHaveLength(1);
    const places = Object.fromEntries(
      server.last.executions.map((id, place) => [id, server.last.position?.split(".")[place]]),
    );
    expect(places).toEqual({ a: "4-0", b: "2-0" });
    await server.last.tick("a", 6, "completed");
    await settle(PACE_MS);
    expect(alsoA).toEqual([at("a", 4), at("a", 6, "completed")]);
    expect(a).toEqual([at("a", 4)]);

    // Whoever comes later is told what is known already.
    const fourth = open();
    const later = watching(fourth, "b");
    await settle(100);
    expect(later).toEqual([at("b", 2)]);
    for (const tab of [second, third, fourth]) tab.stop();
    await settle(100);
    expect(server.open).toHaveLength(0);
  });
});
