import { describe, expect, it } from "vitest";
import { plain, runsOf } from "./ansi";
import { type Line, LineStore, occurrences, saidBy } from "./lines";

const ESC = "\u001b";
const line = (number: number, ts = number): Line => ({
  number,
  ts,
  scope: "s@0",
  task_run_id: null,
  line: `line ${number}`,
  node: "s",
});

describe("colours of a terminal", () => {
  it("become names", () => {
    expect(runsOf(`a ${ESC}[1;31mred${ESC}[0m b`)).toEqual([
      { text: "a ", ink: null, isBold: false, isFaint: false, isUnderlined: false },
      { text: "red", ink: "red", isBold: true, isFaint: false, isUnderlined: false },
      { text: " b", ink: null, isBold: false, isFaint: false, isUnderlined: false },
    ]);
  });

  it("of the larger palettes do not leak their numbers", () => {
    expect(
      runsOf(`${ESC}[38;2;1;31;4mx${ESC}[38;5;2my${ESC}[48;5;31mz`).map((run) => [run.text, run.ink, run.isBold]),
    ).toEqual([
      ["x", null, false],
      ["y", "green", false],
      ["z", "green", false],
    ]);
  });

  it("leave markup as text", () => {
    expect(runsOf("<img src=x onerror=alert(1)>")).toEqual([
      expect.objectContaining({ text: "<img src=x onerror=alert(1)>" }),
    ]);
  });

  it("and other control sequences are dropped", () => {
    expect(plain(`${ESC}]0;title\u0007${ESC}[2Ka${ESC}[?25lb\u0000c${ESC}(Bd`)).toBe("abcd");
    expect(runsOf(`${ESC}]8;;javascript:alert(1)${ESC}\\link${ESC}]8;;${ESC}\\`).map((run) => run.text)).toEqual([
      "link",
    ]);
  });

  it("and a progress bar shows what it wrote last", () => {
    expect(plain("10 %\r50 %\r100 %\r")).toBe("100 %");
  });
});

describe("lines of a run", () => {
  const printed =
    (count: () => number) =>
    async ({ after, limit }: { after: number; limit: number }) => {
      const lines = Array.from({ length: Math.max(0, Math.min(limit, count() - after)) }, (_, at) =>
        line(after + at + 1),
      );
      return { lines, next: after + lines.length < count() ? after + lines.length : null };
    };

  it("are fetched to the end, and from there on", async () => {
    let count = 2500;
    const store = new LineStore(printed(() => count));
    await store.more();
    expect(store.get().lines).toHaveLength(2500);
    count = 2510;
    await store.more();
    expect(store.get().lines.at(-1)?.number).toBe(2510);
    expect(store.get()).toMatchObject({ cut: 0, isReady: true, isLoading: false });
  });

  it("are kept up to a bound, the latest", async () => {
    const store = new LineStore(
      printed(() => 5000),
      0,
      1000,
    );
    await store.more();
    const { lines, cut } = store.get();
    expect(lines.at(-1)?.number).toBe(5000);
    expect(lines.length).toBeLessThanOrEqual(1100);
    expect(cut + lines.length).toBe(5000);
  });

  it("may begin late in a long log", async () => {
    const store = new LineStore(
      printed(() => 5000),
      4900,
    );
    await store.more();
    expect(store.get().lines.map((one) => one.number)).toEqual(Array.from({ length: 100 }, (_, at) => 4901 + at));
    expect(store.get().cut).toBe(4900);
  });

  it("that were said by a moment, though their times are not quite in order", () => {
    const lines = [line(1, 10), line(2, 21), line(3, 20), line(4, 30)];
    expect([5, 10, 20, 30].map((ts) => saidBy(lines, ts).map((one) => one.number))).toEqual([
      [],
      [1],
      [1, 3],
      [1, 2, 3, 4],
    ]);
  });

  it("are searched whatever the case", () => {
    expect(occurrences("An ant and an ANT", "an")).toEqual([
      [0, 2],
      [3, 5],
      [7, 9],
      [11, 13],
      [14, 16],
    ]);
    expect(occurrences("x", "")).toEqual([]);
  });
});
