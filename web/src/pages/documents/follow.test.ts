import { describe, expect, it } from "vitest";
import { isSameFile, lineOf, nodeAt, sorted } from "./follow";
import type { Graph } from "./queries";

const node = (
  id: string,
  line: number | null,
  end_line: number | null,
  file = "/p/jobs/a.yaml",
  frame: string | null = null,
) => ({
  id,
  title: id,
  kind: "component" as const,
  type: "noop",
  tasks: [],
  frame,
  opens: null,
  loop: null,
  badges: [],
  calls: null,
  file,
  line,
  end_line,
});

const graph: Graph = {
  kind: "job",
  name: "a",
  digest: "",
  entry: null,
  nodes: [
    node("outer", 2, 20),
    node("inner", 5, 8),
    node("call", 22, 25),
    node("call/part", 3, 4, "/p/jobs/joblets/part.yaml", "f"),
  ],
  edges: [],
  frames: [{ id: "f", kind: "joblet", title: "part", parent: null, opener: "call" }],
};

describe("between text and graph", () => {
  it("finds the innermost node of a line, in this file only", () => {
    expect(nodeAt(graph, "jobs/a.yaml", 6)?.id).toBe("inner");
    expect(nodeAt(graph, "jobs/a.yaml", 10)?.id).toBe("outer");
    expect(nodeAt(graph, "jobs/a.yaml", 21)).toBeUndefined();
    expect(nodeAt(graph, "jobs/b.yaml", 6)).toBeUndefined();
  });

  it("goes to the call for a node that is written in another file", () => {
    expect(lineOf(graph, "jobs/a.yaml", "inner")).toBe(5);
    expect(lineOf(graph, "jobs/a.yaml", "call/part")).toBe(22);
    expect(lineOf(graph, "jobs/a.yaml", "nobody")).toBeUndefined();
  });

  it("takes a whole path and one from the project's folder for the same file", () => {
    expect(isSameFile("/p/jobs/a.yaml", "jobs/a.yaml")).toBe(true);
    expect(isSameFile("/p/other-a.yaml", "a.yaml")).toBe(false);
  });
});

describe("sorted", () => {
  it("puts errors first, then by line, and other files apart", () => {
    const problem = (line: number, severity: string, file = "a.yaml") => ({ message: `${line}`, line, severity, file });
    const found = sorted(
      [problem(3, "warning"), problem(9, "error"), problem(1, "error", "b.yaml"), problem(2, "error")],
      "a.yaml",
    );
    expect(found.here.map((one) => one.line)).toEqual([2, 9, 3]);
    expect(found.elsewhere.map((one) => one.file)).toEqual(["b.yaml"]);
    expect([found.errors, found.warnings]).toEqual([3, 1]);
  });
});
