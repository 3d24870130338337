import { expect, it } from "vitest";
import { offset, secondsOf } from "./offset";

it("says how long after the beginning", () => {
  expect([0, 0.1234, 62.44, 3723.9, -0.5, -0.0001].map(offset)).toEqual([
    "+0.000",
    "+0.123",
    "+1:02.4",
    "+1:02:03",
    "−0.500",
    "+0.000",
  ]);
});

it("keeps the microseconds of a time", () => {
  expect(secondsOf("2026-11-18T13:26:15.720574Z")).toBeCloseTo(1795008375.720574, 6);
  expect(secondsOf("2026-11-18T13:26:15Z")).toBe(1795008375);
});
