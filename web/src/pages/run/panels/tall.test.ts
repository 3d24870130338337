import { describe, expect, it } from "vitest";
import { inSight, isAtEnd, reveal, scrollOf, sizerHeight, TALLEST, topOf } from "./tall";

const small = { count: 100, row: 24, view: 240 };
const million = { count: 1_000_000, row: 24, view: 600 };

describe("a list that fits", () => {
  it("scrolls one to one", () => {
    expect(sizerHeight(small)).toBe(2400);
    expect(topOf(480, small)).toBe(480);
    expect(scrollOf(480, small)).toBe(480);
    expect(inSight(480, small, 0)).toEqual({ first: 20, end: 30 });
  });

  it("is at its end when its last row can be seen", () => {
    expect(isAtEnd(2160, small)).toBe(true);
    expect(isAtEnd(2100, small)).toBe(false);
    expect(isAtEnd(0, { ...small, count: 3 })).toBe(true);
  });
});

describe("a list of a million rows", () => {
  it("is no taller than a browser allows", () => {
    expect(sizerHeight(million)).toBe(TALLEST);
  });

  it("reaches its first and its last row", () => {
    expect(inSight(topOf(0, million), million, 0).first).toBe(0);
    expect(inSight(topOf(TALLEST - million.view, million), million, 0).end).toBe(1_000_000);
  });

  it("maps there and back", () => {
    for (const top of [0, 1234, 12_000_000, 23_999_400])
      expect(topOf(scrollOf(top, million), million)).toBeCloseTo(top, 3);
  });

  it("reaches every row, though the scroll bar cannot", () => {
    const top = reveal(654_321, 0, million, "start");
    expect(inSight(top, million, 0).first).toBe(654_321);
  });
});

describe("revealing a row", () => {
  it("does not move what can be seen", () => {
    expect(reveal(5, 0, small)).toBe(0);
    expect(reveal(5, 0, small, "centre")).toBe(0);
  });

  it("moves no further than needed", () => {
    expect(reveal(10, 0, small)).toBe(24);
    expect(reveal(3, 240, small)).toBe(72);
  });

  it("puts a far one into the middle", () => {
    expect(reveal(50, 0, small, "centre")).toBe(50 * 24 - 108);
  });
});
