import { describe, expect, it } from "vitest";
import { columnOf, offsetIn, spanIn } from "./positions";

describe("positions", () => {
  it("counts characters, not units of UTF-16", () => {
    const line = "a: 😀 x";
    expect(offsetIn(line, 4)).toBe(3);
    expect(offsetIn(line, 6)).toBe(6);
    expect(columnOf(line, 6)).toBe(6);
    expect(line.slice(offsetIn(line, 6))).toBe("x");
  });

  it("underlines from column to column", () => {
    expect(spanIn("    type: red_csv", 11, 18)).toEqual([10, 17]);
  });

  it("underlines the word when there is no end", () => {
    expect(spanIn("  step: fetch now", 9, null)).toEqual([8, 13]);
  });

  it("underlines the content of the line when there is no column", () => {
    expect(spanIn("    a: 1  ", null, null)).toEqual([4, 8]);
  });

  it("never underlines nothing, and stays on the line", () => {
    expect(spanIn("ab", 3, 9)).toEqual([1, 2]);
    expect(spanIn("ab", 99, null)).toEqual([1, 2]);
    expect(spanIn("", 1, null)).toEqual([0, 0]);
  });
});
