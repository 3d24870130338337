import { describe, expect, it } from "vitest";
import { come, paceOf, playedTo, showTimes } from "./play";
import { clustered, keyed, type Mark, neighbour, seqAt, shareOf, timeNear } from "./scale";

const mark = (seq: number, kind: Mark["kind"]): Mark => ({ seq, ts: seq, kind, text: kind, node: null });

describe("places on the slider", () => {
  it("are events, the first at the left and the last at the right", () => {
    expect([shareOf(1, 101), shareOf(51, 101), shareOf(101, 101)]).toEqual([0, 0.5, 1]);
    expect([seqAt(0, 101), seqAt(0.5, 101), seqAt(1, 101), seqAt(7, 101)]).toEqual([1, 51, 101, 101]);
  });
  it("are found again among a million events", () => {
    for (const seq of [1, 2, 333_333, 999_999, 1_000_000]) expect(seqAt(shareOf(seq, 1_000_000), 1_000_000)).toBe(seq);
  });
  it("hold for a run of one event, or none", () => {
    expect([shareOf(1, 1), seqAt(0.3, 1), seqAt(0.5, 0)]).toEqual([1, 1, 0]);
  });
});

describe("keys of the slider", () => {
  const to = (key: string, shiftKey = false) => keyed({ key, shiftKey }, 500, 1_000_000);
  it("step one, ten, or a hundredth", () => {
    expect([to("ArrowLeft"), to("ArrowRight", true), to("PageUp"), to("Home"), to("End")]).toEqual([
      499, 510, 10_500, 1, 1_000_000,
    ]);
  });
  it("stay within the run", () => {
    expect(keyed({ key: "PageDown", shiftKey: false }, 20, 50)).toBe(1);
    expect(keyed({ key: "x", shiftKey: false }, 20, 50)).toBeNull();
  });
});

describe("the time while dragging", () => {
  it("is exact at a known event and estimated between two", () => {
    const known = [
      { seq: 1, ts: 100 },
      { seq: 11, ts: 200 },
    ];
    expect(timeNear(11, known)).toEqual({ ts: 200, isExact: true });
    expect(timeNear(6, known)).toEqual({ ts: 150, isExact: false });
    expect(timeNear(20, known)).toEqual({ ts: 200, isExact: false });
    expect(timeNear(1, [])).toBeNull();
  });
});

describe("marks", () => {
  it("that lie on each other are one, with the sign of the gravest", () => {
    const found = clustered([mark(1, "start"), mark(500, "retry"), mark(501, "failure"), mark(1000, "end")], 1000, 500);
    expect(found.map((one) => [one.mark.kind, one.marks.length])).toEqual([
      ["start", 1],
      ["failure", 2],
      ["end", 1],
    ]);
  });
  it("are stops to jump to, but for retries", () => {
    const marks = [mark(1, "start"), mark(10, "retry"), mark(20, "failure"), mark(30, "end")];
    expect(neighbour(marks, 5, "next")?.seq).toBe(20);
    expect(neighbour(marks, 20, "next")?.seq).toBe(30);
    expect(neighbour(marks, 20, "previous")?.seq).toBe(1);
    expect(neighbour(marks, 30, "next")).toBeNull();
  });
});

describe("playing", () => {
  it("shows the whole run in the time that was chosen, whatever its length", () => {
    expect(playedTo(paceOf("whole-15"), 0, 1_500_000, 7.5)).toBe(750_000);
    expect(playedTo(paceOf("whole-15"), 0, 1_500_000, 20)).toBe(1_500_000);
    expect(playedTo(paceOf("rate-10"), 5, 100, 1)).toBe(15);
  });
  it("keeps the recorded pace, and does not wait through long pauses", () => {
    const times = showTimes(
      [
        { seq: 1, ts: 0 },
        { seq: 2, ts: 0.5 },
        { seq: 3, ts: 3600 },
      ],
      1,
    );
    expect(times).toEqual([0, 0.5, 2.5]);
    expect([come(times, 0), come(times, 0.6), come(times, 9)]).toEqual([1, 2, 3]);
  });
  it("takes the first pace for one that is not known", () => {
    expect(paceOf("nonsense").id).toBe("whole-15");
  });
});
