import { describe, expect, it } from "vitest";
import { type Compared, candidates, isSame, parted, type Run, timesOf, verdictOf } from "./differences";

const side = (status = "completed") => ({
  execution_id: "a",
  name: "n",
  label: null,
  status,
  started_at: 0,
  ended_at: 1,
  duration_ms: 1,
  events: 3,
  digest: "d",
  file: "f",
});
const equal: Compared = {
  left: side(),
  right: side(),
  same_document: true,
  left_text: "",
  right_text: "",
  inputs: [],
  nodes: [],
  edges: [],
  first: null,
  is_complete: true,
};

describe("two runs", () => {
  it("are the same though their times differ", () => {
    const compared = { ...equal, nodes: [{ node: "a", left: null, right: null, differs: ["time"] }] };
    expect(isSame(compared)).toBe(true);
    expect(verdictOf(compared)).toContain("The runs are the same");
  });

  it("are not the same when anything else differs, and the verdict says what", () => {
    const compared = {
      ...equal,
      right: side("failed"),
      inputs: [{ path: "/rate", left: 1, right: 3 }],
      nodes: [{ node: "a", left: null, right: null, differs: ["status"] }],
    };
    expect(verdictOf(compared)).toBe("One completed, the other failed; 1 input differs; 1 node differs");
  });

  it("may differ in decisions alone", () => {
    const first = { left_seq: 1, right_seq: 1, left: "a", right: "b", node: null };
    expect(verdictOf({ ...equal, first })).toBe("The results are the same, reached by different decisions");
  });

  it("that are too long are said to be so", () => {
    expect(verdictOf({ ...equal, is_complete: false })).toContain("too long");
  });
});

it("two lines are parted where they differ", () => {
  expect(parted("done rows=12 ms", "done rows=345 ms")).toEqual({
    before: "done rows=",
    left: "12",
    right: "345",
    after: " ms",
  });
  expect(parted("aa", "aaa")).toEqual({ before: "aa", left: "", right: "a", after: "" });
  expect(parted("same", "same")).toEqual({ before: "same", left: "", right: "", after: "" });
});

it("runs of the same document are suggested first", () => {
  const run = (execution_id: string, name: string) => ({ execution_id, name, kind: "job", label: null }) as Run;
  const runs = [run("3", "b"), run("2", "a"), run("1", "a")];
  const { same, rest } = candidates(runs, "1");
  expect([same.map((one) => one.execution_id), rest.map((one) => one.execution_id)]).toEqual([["2"], ["3"]]);
  expect(candidates(runs, undefined).rest).toHaveLength(3);
});

it("times are compared when somebody would notice", () => {
  expect([timesOf(100, 210), timesOf(1000, 100), timesOf(100, 110), timesOf(1, 15), timesOf(0, 500)]).toEqual([
    "2.1× as long",
    "10× as fast",
    "",
    "",
    "",
  ]);
});
