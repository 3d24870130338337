import { describe, expect, it } from "vitest";
import { type Bar, drawnBars, nodeOf } from "./bars";
import { offset, panned, ticks, tsOf, xOf, zoomed } from "./scale";

const whole = { since: 1000, until: 1100 };
const bar = (since: number, until: number | null, more: Partial<Bar> = {}): Bar => ({
  since,
  until,
  status: "ok",
  kind: "run",
  count: 1,
  failed: 0,
  label: "load",
  scope: null,
  seq: null,
  attempt: null,
  worker: null,
  is_critical: false,
  ...more,
});

describe("time along the width", () => {
  it("goes there and back", () => {
    expect(xOf(1050, whole, 800)).toBe(400);
    expect(tsOf(400, whole, 800)).toBe(1050);
  });
  it("zooms around what is pointed at", () => {
    const closer = zoomed(whole, whole, 1025, 0.5);
    expect(closer).toEqual({ since: 1012.5, until: 1062.5 });
    expect(xOf(1025, closer, 800)).toBe(xOf(1025, whole, 800));
  });
  it("never leaves the run", () => {
    expect(zoomed({ since: 1000, until: 1010 }, whole, 1000, 100)).toEqual(whole);
    expect(panned({ since: 1080, until: 1100 }, whole, 50)).toEqual({ since: 1080, until: 1100 });
    expect(panned({ since: 1010, until: 1030 }, whole, -50)).toEqual({ since: 1000, until: 1020 });
  });
  it("has ticks at round offsets with room for labels", () => {
    const found = ticks(whole, 1000, 800);
    expect(found.map((tick) => tick.label)).toEqual(["0", "15 s", "30 s", "45 s", "1:00", "1:15", "1:30"]);
    expect(ticks({ since: 1000, until: 1000.01 }, 1000, 800)[1]?.label).toBe("2 ms");
    expect(ticks({ since: 0, until: 40 * 86_400 }, 0, 800).length).toBeLessThan(10);
  });
  it("says offsets as people do", () => {
    expect([offset(0), offset(0.25), offset(1.5, 0.5), offset(125), offset(10_925), offset(180_000)]).toEqual([
      "0",
      "250 ms",
      "1.5 s",
      "2:05",
      "3:02:05",
      "2 d 2:00",
    ]);
  });
});

describe("bars", () => {
  it("are cut to what is visible, and never too narrow to be seen", () => {
    const found = drawnBars([bar(990, 1010), bar(1050, 1050.001), bar(1200, 1300)], whole, 800, 1100);
    expect(found.map(({ x, width }) => [x, Math.round(width)])).toEqual([
      [-2, 82],
      [400, 3],
    ]);
  });
  it("of a worker belong to a step or a sub-job, whatever their label says", () => {
    const ofScope = (kind: Bar["kind"], scope: string, label: string) => nodeOf(bar(0, 1, { kind, scope, label }));
    expect(ofScope("run", "fetch@2", "fetch")).toBe("fetch");
    expect(ofScope("run", "fetch@2[5]", "")).toBe("fetch");
    expect(ofScope("lease", "fetch@2", "fetch, lost or given back")).toBe("fetch");
    expect(ofScope("lease", "call@1/fetch@2", "range 3")).toBe("fetch");
    expect(ofScope("lease", "<load>", "sub-job load")).toBe("<load>");
  });
  it("go on to now while they are open", () => {
    expect(drawnBars([bar(1000, null)], whole, 800, 1025)[0]?.width).toBe(200);
  });
  it("are merged when they are narrower than the pixels", () => {
    const many = Array.from({ length: 100_000 }, (_, at) =>
      bar(1000 + at / 1000, 1000 + at / 1000 + 0.0005, { failed: at === 7 ? 1 : 0 }),
    );
    const found = drawnBars(many, whole, 800, 1100);
    expect(found.length).toBeLessThanOrEqual(800);
    expect(found.reduce((sum, one) => sum + one.bar.count, 0)).toBe(100_000);
    expect(found.reduce((sum, one) => sum + one.bar.failed, 0)).toBe(1);
  });
});
