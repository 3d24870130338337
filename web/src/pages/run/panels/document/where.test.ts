import { describe, expect, it } from "vitest";
import type { Graph, GraphNode } from "../../context";
import { catalogPath, linesOf, nodeAt, shortNames } from "./where";

const node = (id: string, line: number | null, end_line: number | null, file = "job.yaml") =>
  ({ id, line, end_line, file }) as GraphNode;
const graph = {
  nodes: [node("call", 10, 30), node("inner", 12, 15), node("other", 12, 15, "joblet.yaml"), node("made", null, null)],
} as Graph;

describe("the node of a line", () => {
  it("is the innermost one", () => {
    expect(nodeAt(graph, "job.yaml", 13)?.id).toBe("inner");
    expect(nodeAt(graph, "job.yaml", 20)?.id).toBe("call");
    expect(nodeAt(graph, "joblet.yaml", 13)?.id).toBe("other");
  });

  it("may be nobody's", () => {
    expect(nodeAt(graph, "job.yaml", 31)).toBeNull();
    expect(nodeAt(undefined, "job.yaml", 1)).toBeNull();
  });

  it("and back", () => {
    expect(linesOf(graph.nodes[0])).toEqual([10, 30]);
    expect(linesOf(node("x", 4, null))).toEqual([4, 4]);
    expect(linesOf(graph.nodes[3])).toBeNull();
  });
});

it("files are called by as little of their paths as tells them apart", () => {
  expect(shortNames(["/a/job.yaml"])).toEqual(["job.yaml"]);
  expect(shortNames(["/a/x/tidy.yaml", "/a/y/tidy.yaml", "/a/job.yaml"])).toEqual([
    "x/tidy.yaml",
    "y/tidy.yaml",
    "job.yaml",
  ]);
});

it("an address of the catalog leads to the document, whatever its version", () => {
  expect(catalogPath("catalog:/sales/orders@3")).toBe("sales/orders");
  expect(catalogPath("catalog:/shop@12/jobs/load.yaml")).toBe("shop/jobs/load.yaml");
  expect(catalogPath("/home/ada/orders.yaml")).toBeNull();
});
