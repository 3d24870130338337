import { describe, expect, it } from "vitest";
import type { EdgeState, NodeState } from "../context";
import { pictured } from "./picture";
import { graph, link, node } from "./samples";
import { cardName, progress, retrying, seen, shares, wireLabel, wireName, wireSeen } from "./wording";

function state(more: Partial<NodeState> = {}): NodeState {
  return {
    status: "ok",
    runs: 1,
    ended: { ok: 1 },
    run: "load",
    started_at: 100,
    ended_at: 112,
    ms: 12_000,
    attempt: 1,
    task: null,
    retry_at: null,
    fan: null,
    rows_in: {},
    rows_out: {},
    rows_so_far: {},
    error: null,
    reason: null,
    worker: null,
    children: [],
    ...more,
  };
}
const edge = (more: Partial<EdgeState> = {}): EdgeState => ({
  state: "fired",
  fired: 1,
  rows: null,
  rate: null,
  ...more,
});

const picture = pictured(
  graph(
    [node("load", { type: "write_sql" }), node("next")],
    [
      link("load", "next"),
      link("load", "next", { id: "bad", kind: "control", on: "error", label: "error", is_failure: true }),
    ],
  ),
  new Set(),
);
const card = picture.cards[0];
const [data, bad] = picture.wires;
if (card === undefined || data === undefined || bad === undefined)
  throw new Error("the sample has a card and two links");

describe("a card", () => {
  it("is named by all that is seen of it", () => {
    const failed = state({ status: "failed", attempt: 3, error: "no connection" });
    expect(cardName(card, failed, undefined, 200)).toBe("load, failed, 3 attempts, 12 s, write_sql, no connection");
    expect(cardName(card, undefined, undefined, 200)).toBe("load, waiting, write_sql");
  });
  it("says how far a loop is", () => {
    const fan = { total: 1000, ok: 409, failed: 3, open: 8, mode: "parallel", failures: [7] };
    expect(progress(fan)).toBe("412 of 1,000, 3 failed");
    expect(shares(fan)).toEqual({ ok: 0.409, failed: 0.003 });
    expect(progress({ ...fan, total: null })).toBe("412 so far, 3 failed");
    expect(shares({ ...fan, total: 0, ok: 0, failed: 0 })).toEqual({ ok: 1, failed: 0 });
  });
  it("counts down to the next attempt", () => {
    const waiting = state({ status: "retrying", attempt: 2, retry_at: 104 });
    expect(retrying(waiting, 100.2)).toBe("attempt 3 in 4 s");
    expect(retrying(waiting, 105)).toBe("attempt 3 now");
    expect(retrying(state(), 100)).toBeNull();
  });
  it("goes on with its duration while it runs, on top of what earlier runs took", () => {
    expect(seen(state({ status: "running", started_at: 100, ms: 2000 }), undefined, 103)).toEqual({
      state: "running",
      ms: 5000,
      isGoing: true,
    });
    expect(seen(state({ status: "waiting", started_at: null, ms: 0 }), undefined, 103).ms).toBeNull();
  });
});

describe("a link", () => {
  it("says exactly how many rows went over it", () => {
    expect(wireLabel(data, wireSeen([edge({ rows: 1_204_331, rate: 3100 })]))).toBe("1,204,331 rows");
    expect(wireLabel(data, wireSeen([edge({ rows: 1 })]))).toBe("1 row");
    expect(wireLabel(data, wireSeen([undefined]))).toBe("");
  });
  it("says how often it fired", () => {
    expect(wireLabel(bad, wireSeen([edge({ fired: 4 })]))).toBe("error × 4");
    expect(wireName(bad, wireSeen([edge({ state: "dead", fired: 0 })]))).toBe(
      "Control link load to next, on error, will not fire",
    );
  });
  it("that stands for several is fired if one is, and dead if all are", () => {
    expect(wireSeen([edge({ rows: 3 }), edge({ state: "dead", rows: null })])).toMatchObject({
      state: "fired",
      rows: 3,
    });
    expect(wireSeen([edge({ state: "dead" }), edge({ state: "dead" })]).state).toBe("dead");
    expect(wireSeen([edge({ state: "dead" }), undefined]).state).toBe("unsettled");
  });
});
