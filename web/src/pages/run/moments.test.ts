import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ApiError, Unreachable } from "@/api/errors";
import type { Moment } from "./context";
import { Moments, type Wanted } from "./moments";

function moment(seq: number, last: number, nodes: Moment["nodes"] = {}): Moment {
  return {
    execution_id: "r",
    seq,
    ts: seq,
    now: 0,
    last_seq: last,
    folded_to: seq,
    is_live: seq === last,
    kind: "Job",
    name: "orders",
    label: null,
    file: "orders.yaml",
    digest: "d",
    status: "running",
    status_reason: null,
    error: null,
    exit_code: null,
    started_at: 0,
    ended_at: null,
    scope: "",
    counts: {},
    nodes,
    edges: {},
    frames: {},
    executions: [],
  };
}

function watched() {
  const asked: { wanted: Wanted; resolve: (moment: Moment) => void; reject: (error: Error) => void }[] = [];
  const moments = new Moments((wanted) => new Promise((resolve, reject) => asked.push({ wanted, resolve, reject })));
  const answer = async (made: Moment) => {
    asked.at(-1)?.resolve(made);
    await vi.advanceTimersByTimeAsync(0);
  };
  return { moments, asked, answer };
}

const live: Wanted = { run: "r", scope: "", at: null };

describe("the moment that is shown", () => {
  beforeEach(() => vi.useFakeTimers());
  afterEach(() => vi.useRealTimers());

  it("follows a run at most four times a second, however fast it ticks", async () => {
    const { moments, asked, answer } = watched();
    moments.want(live);
    let seq = 1;
    for (let ms = 0; ms < 2000; ms += 10) {
      moments.tick(seq, "running");
      await answer(moment(seq, seq));
      seq += 1;
      await vi.advanceTimersByTimeAsync(10);
    }
    expect(asked.length).toBeLessThanOrEqual(9);
    expect(asked.length).toBeGreaterThanOrEqual(6);
  });

  it("catches up with the last event, even if no further tick comes", async () => {
    const { moments, asked, answer } = watched();
    moments.want(live);
    moments.tick(50, "running");
    await answer(moment(40, 40));
    await vi.advanceTimersByTimeAsync(300);
    expect(asked).toHaveLength(2);
    await answer(moment(50, 50));
    await vi.advanceTimersByTimeAsync(5000);
    expect(asked).toHaveLength(2);
    expect(moments.get().moment?.seq).toBe(50);
  });

  it("is asked for once if the news says what is known", async () => {
    const { moments, asked, answer } = watched();
    moments.want(live);
    await answer(moment(50, 50));
    moments.tick(50, "running");
    moments.tick(40, "interrupted");
    await vi.advanceTimersByTimeAsync(5000);
    expect(asked).toHaveLength(1);
  });

  it("is asked for again if the status has changed without an event", async () => {
    const { moments, asked, answer } = watched();
    moments.want(live);
    await answer(moment(50, 50));
    moments.tick(50, "crashed");
    await vi.advanceTimersByTimeAsync(300);
    expect(asked).toHaveLength(2);
    await answer({ ...moment(50, 50), status: "crashed" });
    await vi.advanceTimersByTimeAsync(5000);
    expect(asked).toHaveLength(2);
  });

  it("is looked at again while a component runs, whose rows are counted without an event, and no longer", async () => {
    const { moments, asked, answer } = watched();
    const running: Partial<Moment["nodes"][string]> = { status: "running", task: null };
    const load = (rows: number) => ({ ...running, rows_so_far: { main: rows } }) as Moment["nodes"][string];
    moments.want(live);
    for (const rows of [0, 10, 20]) {
      await answer(moment(5, 5, { load: load(rows) }));
      await vi.advanceTimersByTimeAsync(1000);
    }
    expect(asked).toHaveLength(4);
    expect(moments.get().moment?.nodes.load?.rows_so_far).toEqual({ main: 20 });
    await answer(moment(5, 5, { load: { ...load(20), task: "fetch" }, sort: { ...load(20), status: "ok" } }));
    await vi.advanceTimersByTimeAsync(5000);
    expect(asked).toHaveLength(4);
  });

  it("does not move with the run while a moment of the past is shown", async () => {
    const { moments, asked, answer } = watched();
    moments.want({ ...live, at: 7 });
    await answer(moment(7, 50));
    moments.tick(60, "running");
    await vi.advanceTimersByTimeAsync(5000);
    expect(asked).toHaveLength(1);
    expect(moments.get().moment?.seq).toBe(7);
  });

  it("keeps what has not changed as the same object", async () => {
    const { moments, answer } = watched();
    const state = { status: "ok", runs: 1 } as Moment["nodes"][string];
    moments.want({ ...live, at: 7 });
    await answer(moment(7, 50, { load: { ...state } }));
    const before = moments.get().moment?.nodes.load;
    moments.want({ ...live, at: 8 });
    await answer(moment(8, 50, { load: { ...state }, sort: { ...state } }));
    expect(moments.get().moment?.nodes.load).toBe(before);
  });

  it("asks once for a moment of the past", async () => {
    const { moments, asked, answer } = watched();
    for (const at of [7, 8, 7, 8]) {
      moments.want({ ...live, at });
      await vi.advanceTimersByTimeAsync(50);
      if (asked.at(-1)?.wanted.at === at) await answer(moment(at, 50));
    }
    expect(asked.map((one) => one.wanted.at)).toEqual([7, 8]);
    expect(moments.get().moment?.seq).toBe(8);
  });

  it("shows the old moment until the new one is there, but never that of another execution", async () => {
    const { moments, answer } = watched();
    moments.want(live);
    await answer(moment(9, 9));
    moments.want({ ...live, at: 3 });
    expect(moments.get().moment?.seq).toBe(9);
    moments.want({ ...live, scope: "call@1" });
    expect(moments.get().moment).toBeUndefined();
  });

  it("asks again as long as the server has not read so far", async () => {
    const { moments, asked, answer } = watched();
    moments.want({ ...live, at: 900_000 });
    for (const read of [300_000, 600_000, 900_000]) {
      await answer(moment(read, 1_000_000));
      await vi.advanceTimersByTimeAsync(200);
    }
    expect(asked).toHaveLength(3);
    expect(moments.get().moment?.seq).toBe(900_000);
  });

  it("asks a server that is away again, and not one that refused", async () => {
    const { moments, asked } = watched();
    moments.want(live);
    asked[0]?.reject(new Unreachable());
    await vi.advanceTimersByTimeAsync(3500);
    expect(asked).toHaveLength(2);
    asked[1]?.reject(new ApiError(404, "not_found", "there is no run `r`"));
    await vi.advanceTimersByTimeAsync(9000);
    expect(asked).toHaveLength(2);
    expect((moments.get().error as Error).message).toBe("there is no run `r`");
  });
});
