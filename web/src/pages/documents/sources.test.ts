import { describe, expect, it } from "vitest";
import type { FileEntry, Graph } from "./queries";
import { relative, takenIn } from "./sources";

describe("relative", () => {
  it("goes from the folder of a file to another file", () => {
    expect(relative("jobs/a.yaml", "jobs/joblets/b.yaml")).toBe("joblets/b.yaml");
    expect(relative("jobs/x/a.yaml", "jobs/b.yaml")).toBe("../b.yaml");
    expect(relative("a.yaml", "b.yaml")).toBe("b.yaml");
  });
});

describe("takenIn", () => {
  it("finds the files of joblets among those of the project", () => {
    const file = (path: string): FileEntry => ({
      path,
      file: `/p/${path}`,
      kind: "job",
      name: path,
      modified_at: 0,
      size: 0,
    });
    const graph = {
      nodes: [{ file: "/p/a.yaml" }, { file: "/p/joblets/b.yaml" }, { file: "/elsewhere/c.yaml" }],
    } as unknown as Graph;
    const files = [file("a.yaml"), file("joblets/b.yaml"), file("d.yaml")];
    expect(takenIn(graph, file("a.yaml"), files).map((one) => one.path)).toEqual(["joblets/b.yaml"]);
  });
});
