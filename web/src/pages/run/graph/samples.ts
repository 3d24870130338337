/** Graphs for tests. */
import type { Graph, GraphEdge, GraphNode } from "../context";

export function node(id: string, more: Partial<GraphNode> = {}): GraphNode {
  return {
    id,
    title: id,
    kind: "component",
    type: "filter",
    tasks: [],
    frame: null,
    opens: null,
    loop: null,
    badges: [],
    calls: null,
    file: "job.yaml",
    line: 1,
    end_line: 2,
    ...more,
  };
}

export function link(source: string, target: string, more: Partial<GraphEdge> = {}): GraphEdge {
  return {
    id: `${source}->${target}`,
    source,
    target,
    kind: "data",
    on: "data",
    label: "",
    port: null,
    to_port: null,
    guard: null,
    is_failure: false,
    file: "job.yaml",
    line: 1,
    ...more,
  };
}

export function graph(nodes: GraphNode[], edges: GraphEdge[] = [], frames: Graph["frames"] = []): Graph {
  return { kind: "Job", name: "orders", digest: "d", entry: null, nodes, edges, frames };
}

/** `read → clean.trim → clean.check → write`, with `clean` a joblet; all in one sub-job, which `report` follows. */
export const WITH_JOBLET = graph(
  [
    node("read", { frame: "s1" }),
    node("clean", { frame: "s1", kind: "joblet", opens: "clean/" }),
    node("clean.trim", { frame: "clean/", title: "trim" }),
    node("clean.check", { frame: "clean/", title: "check" }),
    node("write", { frame: "s1" }),
    node("report", { frame: "s2" }),
  ],
  [
    link("read", "clean.trim"),
    link("clean.trim", "clean.check"),
    link("clean.check", "write"),
    link("clean.check", "write", { id: "rejects", port: "reject" }),
    link("read", "report", { kind: "control", on: "ok", label: "ok" }),
  ],
  [
    { id: "s1", kind: "subjob", title: "read", parent: null, opener: null },
    { id: "s2", kind: "subjob", title: "report", parent: null, opener: null },
    { id: "clean/", kind: "joblet", title: "clean", parent: "s1", opener: "clean" },
  ],
);
