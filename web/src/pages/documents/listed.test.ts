import { describe, expect, it } from "vitest";
import { catalogPath, matching, rowsOf } from "./listed";
import type { Filed, FileEntry, RunEntry } from "./queries";
import { nameOf, pathProblem } from "./templates";

const file = (path: string, kind = "Job"): FileEntry => ({
  path,
  file: `/p/${path}`,
  kind,
  name: path,
  modified_at: 1,
  size: 1,
});
const filed = (path: string): Filed => ({
  path,
  version: 2,
  digest: "",
  kind: "playbook",
  created_at: "2026-01-01T00:00:00Z",
  created_by: "x",
});
const run = (execution_id: string, name: string, status = "completed") =>
  ({ execution_id, file: name, status, kind: "job", name }) as unknown as RunEntry;

describe("rowsOf", () => {
  it("gives each document its latest run", () => {
    const rows = rowsOf(
      [file("a.yaml"), file("b.yaml")],
      [filed("sales/orders")],
      [run("3", "/p/a.yaml", "failed"), run("2", "catalog:/sales/orders@2"), run("1", "/p/a.yaml")],
    );
    expect(rows.map((row) => [row.id, row.run?.execution_id])).toEqual([
      ["file:a.yaml", "3"],
      ["file:b.yaml", undefined],
      ["catalog:sales/orders", "2"],
    ]);
  });

  it("knows documents of projects of the catalog", () => {
    expect(catalogPath("catalog:/shop@3/jobs/load.yaml")).toBe("shop");
    expect(catalogPath("/p/a.yaml")).toBeNull();
  });
});

describe("matching", () => {
  const rows = rowsOf(
    [file("jobs/orders.yaml"), file("hello.yaml", "Playbook")],
    [],
    [run("1", "/p/hello.yaml", "failed")],
  );

  it("wants every word", () => {
    expect(matching(rows, "ORD job", undefined).map((row) => row.path)).toEqual(["jobs/orders.yaml"]);
    expect(matching(rows, "failed", undefined).map((row) => row.path)).toEqual(["hello.yaml"]);
    expect(matching(rows, "", "playbook").map((row) => row.path)).toEqual(["hello.yaml"]);
  });
});

describe("pathProblem", () => {
  it("takes a path within the project that is free", () => {
    expect(pathProblem("jobs/a.yaml", [])).toBeNull();
    expect(pathProblem("jobs/a.yaml", ["jobs/a.yaml"])).toContain("already");
    for (const path of ["", "../a.yaml", "/a.yaml", "a//b.yaml", "a.txt"]) expect(pathProblem(path, [])).not.toBeNull();
  });

  it("names a document by its file", () => {
    expect(nameOf("jobs/orders.yaml")).toBe("orders");
  });
});
