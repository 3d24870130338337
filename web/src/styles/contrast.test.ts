import { describe, expect, it } from "vitest";
import text from "./tokens.css?raw";

const tokens = new Map(
  [...text.matchAll(/--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)/g)].map((found) => [
    found[1] ?? "",
    [found[2] ?? "", found[3] ?? ""] as const,
  ]),
);

function luminance(colour: string): number {
  const [red, green, blue] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one: string, other: string): number {
  const [less, more] = [luminance(one), luminance(other)].sort((a, b) => a - b) as [number, number];
  return (more + 0.05) / (less + 0.05);
}

function least(words: string[], grounds: string[], wanted: number) {
  for (const [theme, side] of [
    ["light", 0],
    ["dark", 1],
  ] as const) {
    for (const word of words) {
      for (const ground of grounds) {
        const found = contrast(tokens.get(word)?.[side] ?? "", tokens.get(ground)?.[side] ?? "");
        expect(found, `${word} on ${ground}, ${theme}`).toBeGreaterThanOrEqual(wanted);
      }
    }
  }
}

const GROUNDS = ["ground", "surface", "raised", "inset", "hover", "selected"];
const STATES = [...tokens.keys()].filter((name) => name.startsWith("state-") && !name.endsWith("-ground"));

describe("contrast", () => {
  it("text can be read on every ground", () => {
    least(["text", "text-2", "text-3", "accent", "accent-strong"], GROUNDS, 4.5);
  });

  it("a state can be read in its badge and in a table", () => {
    expect(STATES).toHaveLength(9);
    for (const state of STATES) least([state], [`${state}-ground`, ...GROUNDS], 4.5);
  });

  it("syntax can be read where code is shown", () => {
    least(["syntax-key", "syntax-string", "syntax-number", "syntax-atom", "syntax-comment"], ["surface", "inset"], 4.5);
  });

  it("a button's word can be read on it", () => {
    least(["on-accent"], ["accent-ground"], 4.5);
    least(["on-danger"], ["danger-ground"], 4.5);
  });

  it("edges of controls and focus rings can be seen", () => {
    least(["line-control", "focus"], GROUNDS, 3);
  });
});
