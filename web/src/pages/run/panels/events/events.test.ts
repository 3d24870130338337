import { describe, expect, it, vi } from "vitest";
import { placeOf, scopeOfName, toneOf } from "./event";
import { log, made } from "./made";
import { EventPages } from "./pages";
import { EventScan, NO_FILTER } from "./scan";
import { summaryOf } from "./summary";

const settled = () => new Promise((resolve) => setTimeout(resolve));

describe("pages of events", () => {
  it("fetches only the pages in sight", async () => {
    const { load, asked } = log(() => 1_000_000);
    const pages = new EventPages(load, 200);
    pages.grown(1_000_000);
    pages.want(654_300, 654_420);
    await settled();
    expect(asked).toEqual([654_200, 654_400]);
    expect(pages.get(654_321)?.seq).toBe(654_321);
    expect(pages.get(1)).toBeUndefined();
  });

  it("keeps the pages that were used last", async () => {
    const { load, asked } = log(() => 10_000);
    const pages = new EventPages(load, 100, 3);
    pages.grown(10_000);
    for (const seq of [1, 101, 201, 1, 301]) {
      pages.want(seq, seq);
      await settled();
    }
    expect(pages.loaded).toBe(3);
    expect(pages.get(1)).toBeDefined();
    expect(pages.get(101)).toBeUndefined();
    expect(asked).toEqual([0, 100, 200, 300]);
  });

  it("fetches the last page again when the log has grown into it, and no other", async () => {
    let size = 150;
    const { load, asked } = log(() => size);
    const pages = new EventPages(load, 100);
    pages.grown(150);
    pages.want(1, 150);
    await settled();
    size = 160;
    pages.grown(160);
    pages.want(1, 160);
    await settled();
    pages.want(1, 160);
    await settled();
    expect(asked).toEqual([0, 100, 100]);
    expect(pages.get(160)).toBeDefined();
  });

  it("gives up what has been scrolled past", async () => {
    const signals: AbortSignal[] = [];
    const pages = new EventPages(({ signal }) => {
      signals.push(signal);
      return new Promise(() => undefined);
    }, 100);
    pages.grown(10_000);
    pages.want(1, 50);
    pages.want(5001, 5050);
    expect(signals.map((signal) => signal.aborted)).toEqual([true, false]);
  });

  it("says what failed, and tries again when asked to", async () => {
    let isDown = true;
    const { load } = log(() => 10);
    const pages = new EventPages((request) => (isDown ? Promise.reject(new Error("away")) : load(request)), 100);
    const heard = vi.fn();
    pages.subscribe(heard);
    pages.want(1, 10);
    await settled();
    expect(pages.error).toEqual(new Error("away"));
    isDown = false;
    pages.retry();
    await settled();
    expect(pages.error).toBeNull();
    expect(pages.get(3)).toBeDefined();
    expect(heard).toHaveBeenCalled();
  });
});

describe("a filter", () => {
  it("goes on until enough are found", async () => {
    const { load, asked } = log(
      () => 10_000,
      (event) => event.seq % 100 === 0,
      1000,
    );
    const scan = new EventScan({ ...NO_FILTER, text: "x" }, load, 50);
    scan.until(25);
    await settled();
    expect(
      scan
        .get()
        .found.map((event) => event.seq)
        .slice(0, 3),
    ).toEqual([100, 200, 300]);
    expect(scan.get()).toMatchObject({ state: "enough", position: 3000, last: 10_000 });
    expect(asked).toEqual([0, 1000, 2000]);
  });

  it("reaches the end, and goes on when the log grows", async () => {
    let size = 1000;
    const { load } = log(
      () => size,
      (event) => event.seq % 400 === 0,
      500,
    );
    const scan = new EventScan(NO_FILTER, load);
    scan.until(50);
    await settled();
    expect(scan.get()).toMatchObject({ state: "end", position: 1000 });
    size = 1300;
    scan.grown(1300);
    await settled();
    expect(scan.get().found.map((event) => event.seq)).toEqual([400, 800, 1200]);
    expect(scan.get().state).toBe("end");
  });

  it("stops, and goes on only when it is asked to", async () => {
    const { load } = log(
      () => 5000,
      () => false,
      100,
    );
    const scan = new EventScan(NO_FILTER, load);
    scan.until(10);
    scan.stop();
    await settled();
    expect(scan.get().state).toBe("stopped");
    scan.until(10);
    await settled();
    expect(scan.get()).toMatchObject({ state: "stopped", position: 0 });
    scan.until(10, true);
    await settled();
    await settled();
    expect(scan.get().state).toBe("end");
  });

  it("says what failed", async () => {
    const scan = new EventScan(NO_FILTER, () => Promise.reject(new Error("away")));
    scan.until(10);
    await settled();
    expect(scan.get()).toMatchObject({ state: "failed", error: new Error("away") });
  });
});

describe("an event in a line", () => {
  const line = (event_type: string, payload: unknown) => summaryOf(made(1, { event_type, payload }));

  it("says rows, errors and times", () => {
    expect(line("component.ok", { rows_in: { input: 12 }, rows_out: { main: 11, strangers: 1 }, ms: 45.2 })).toBe(
      "12 rows in · main 11, strangers 1 rows out · 45 ms",
    );
    expect(line("step.failed", { error: { kind: "exception", message: "ValueError:\n  bad" } })).toBe(
      "exception: ValueError: bad",
    );
    expect(line("edge.fired", { from: "a", to: "b", on: "ok" })).toBe("a (ok) b");
    expect(line("loop.shard.done", { lo: 0, hi: 7, failed: 1, ms: 0 })).toBe("elements 0 to 6 · 1 failed");
  });

  it("says that a task is tried again, and when", () => {
    const event = made(1, {
      payload: {
        do: "retry",
        delay: 0.5,
        outcome: { status: "error", error: { kind: "connect", message: "refused" } },
      },
    });
    expect(summaryOf(event)).toBe("retry · after 0.5 s · connect: refused");
    expect(toneOf(event)).toBe("retrying");
  });

  it("says something about a type that is not known", () => {
    expect(line("moon.risen", { phase: "full", list: [1] })).toBe("phase full");
  });

  it("keeps long values short", () => {
    expect(
      line("task.done", { do: "continue", outcome: { status: "ok", result: "x".repeat(5000) } }).length,
    ).toBeLessThan(200);
  });
});

describe("the place of an event", () => {
  it("is its task, its element or its scope", () => {
    expect(placeOf(made(1, { task_run_id: "s@0/t#1" }))).toBe("s@0/t#1");
    expect(placeOf(made(1, { shard_id: "s@0[4]" }))).toBe("s@0[4]");
    expect(placeOf(made(1, { scope: "" }))).toBe("");
  });

  it("can be read from the name of an event", () => {
    expect(scopeOfName("r/fetch@2:5", "r")).toBe("fetch@2");
    expect(scopeOfName("r/:0", "r")).toBe("");
    expect(scopeOfName("r/measure@0[4]:1.4", "r")).toBe("measure@0[4]");
  });
});
