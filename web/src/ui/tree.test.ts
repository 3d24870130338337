import { describe, expect, it } from "vitest";
import { changesOf, extended, leavesOf, moreOf, type Parts, partOf, pointer, rowsOf } from "./tree";

const more = (kind: string, total: number) => ({ $more: { kind, total } });
const none = new Set<string>();
const told = (parts: Parts, toggled: ReadonlySet<string> = none, depth = 1) =>
  rowsOf(parts, toggled, depth).map(
    (row) => `${"  ".repeat(row.level)}${row.name ?? ""}${row.name === null ? "" : ": "}${row.text}`,
  );

describe("a value that is there", () => {
  it("is a tree, open to some depth", () => {
    const parts = new Map([["", partOf({ a: 1, b: { c: [true, null] }, d: "x", e: [] }, null)]]);
    expect(told(parts)).toEqual(["{", "  a: 1", "  b: {…} 1 entry", '  d: "x"', "  e: []"]);
    expect(told(parts, new Set(["/b"]), 1)).toEqual([
      "{",
      "  a: 1",
      "  b: {",
      "    c: […] 2 items",
      '  d: "x"',
      "  e: []",
    ]);
  });

  it("has rows that are named by pointers", () => {
    const parts = new Map([["", partOf({ a: [1, { "b/c": "x" }], n: null }, null)]]);
    const paths = rowsOf(parts, new Set(["/a", "/a/1"]), 1).map((row) => row.path);
    expect(paths).toEqual(["", "/a", "/a/0", "/a/1", "/a/1/b~1c", "/n"]);
    expect(told(parts, none, 0)).toEqual(["{…} 2 entries"]);
  });

  it("may look like a mark, and is none where all is there", () => {
    const parts = new Map([["", partOf({ a: more("list", 3) }, null)]]);
    expect(rowsOf(parts, none, 1)[1]?.isMissing).toBe(true);
    expect(rowsOf(parts, none, 1, () => null)[1]).toMatchObject({ isMissing: false, text: "{…} 1 entry" });
  });

  it("may be an atom", () => {
    expect(told(new Map([["", partOf("***", null)]]))).toEqual(['"***"']);
    expect(told(new Map([["", partOf(null, null)]]))).toEqual(["null"]);
  });
});

describe("a value of which parts are there", () => {
  const parts = new Map([["", partOf({ rows: more("list", 500), note: more("text", 90_000) }, 2)]]);

  it("says how much there is", () => {
    expect(told(parts)).toEqual(["{", "  rows: […] 500 items", '  note: "…" 90,000 characters']);
    expect(rowsOf(parts, none, 1)[1]).toMatchObject({ isMissing: true, isBranch: true, path: "/rows" });
  });

  it("waits for what is opened, then shows it, and offers the rest", () => {
    const open = new Set(["/rows"]);
    expect(told(parts, open)).toEqual(["{", "  rows: […] 500 items", "    Loading …", '  note: "…" 90,000 characters']);
    const loaded = new Map(parts).set("/rows", partOf([{ id: 1 }, { id: 2 }], 500));
    expect(told(loaded, open)).toEqual([
      "{",
      "  rows: [",
      "    0: {…} 1 entry",
      "    1: {…} 1 entry",
      "    Show more: 498 entries left",
      '  note: "…" 90,000 characters',
    ]);
    expect(rowsOf(loaded, open, 1)[4]).toMatchObject({ kind: "more", from: 2, path: "/rows#more" });
  });

  it("grows page by page", () => {
    expect(extended(partOf([1, 2], 4), partOf([3, 4], 4))).toEqual({ kind: "list", value: [1, 2, 3, 4], total: 4 });
    expect(extended(partOf({ a: 1 }, 2), partOf({ b: 2 }, 2)).value).toEqual({ a: 1, b: 2 });
    expect(extended(partOf("ab", 4), partOf("cd", 4)).value).toBe("abcd");
  });

  it("does not take a value of the user for a mark", () => {
    expect(moreOf({ $more: 5 })).toBeNull();
    expect(moreOf({ $more: { kind: "list", total: 3 }, other: 1 })).toBeNull();
    expect(moreOf(more("list", 3))).toEqual({ kind: "list", total: 3 });
  });
});

it("pointers escape what they must", () => {
  expect(pointer("/a", "b/c~d")).toBe("/a/b~1c~0d");
});

it("differences are marked where they are and above", () => {
  const before = leavesOf({ a: 1, b: { c: 2, d: 3 } });
  const now = leavesOf({ a: 1, b: { c: 5, d: 3 }, e: 4 });
  expect([...changesOf(before, now)].sort()).toEqual(["", "/b", "/b/c", "/e"]);
  expect(changesOf(before, before)).toEqual(new Set());
});
