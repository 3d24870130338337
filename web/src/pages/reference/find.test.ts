import { describe, expect, it } from "vitest";
import type { ReferenceEntry } from "../documents/queries";
import { families, found } from "./find";

const entry = (
  name: string,
  family: string,
  summary = "",
  kind: "tool" | "component" = "component",
): ReferenceEntry => ({
  kind,
  name,
  family,
  summary,
  error: null,
});

const entries = [
  entry("join", "combine", "Join two inputs."),
  entry("read_csv", "files", "Read rows from delimited text."),
  entry("sort", "rows", "Sort rows; read on."),
  entry("write_csv", "files"),
];

describe("found", () => {
  it("puts names before what is only said", () => {
    expect(found(entries, "read").map((one) => one.name)).toEqual(["read_csv", "sort"]);
  });

  it("wants every word, and finds families", () => {
    expect(found(entries, "files csv").map((one) => one.name)).toEqual(["read_csv", "write_csv"]);
    expect(found(entries, "csv join")).toEqual([]);
  });

  it("gives all for no words, as they are", () => {
    expect(found(entries, " ")).toEqual(entries);
  });
});

describe("families", () => {
  it("groups in order", () => {
    expect(families(entries).map((one) => [one.name, one.entries.length])).toEqual([
      ["combine", 1],
      ["files", 2],
      ["rows", 1],
    ]);
  });
});
