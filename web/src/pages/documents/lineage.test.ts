import { describe, expect, it } from "vitest";
import { origins, portsOf, uses } from "./lineage";
import type { Lineage } from "./queries";

const step = (from: string, into: string) => {
  const [component = "", port = "", column = ""] = from.split(".");
  const [into_component = "", into_port = "", into_column = ""] = into.split(".");
  return { component, port, column, into_component, into_port, into_column };
};

const lineage: Lineage = {
  columns: { "a.main": [{ name: "x", type: "integer" }], "b.main": [] },
  steps: [
    step("a.main.x", "b.main.y"),
    step("a.main.z", "b.main.y"),
    step("b.main.y", "c.main.total"),
    step("c.main.total", "a.main.x"),
  ],
};

describe("lineage", () => {
  it("goes back to all origins, once each, also around a circle", () => {
    expect(
      origins(lineage, { component: "c", port: "main", column: "total" }).map(
        (one) => `${one.steps} ${one.component}.${one.column}`,
      ),
    ).toEqual(["1 b.y", "2 a.x", "2 a.z"]);
  });

  it("goes forth to all uses", () => {
    expect(
      uses(lineage, { component: "a", port: "main", column: "z" }).map((one) => `${one.component}.${one.column}`),
    ).toEqual(["b.y", "c.total", "a.x"]);
  });

  it("lists the ports", () => {
    expect(portsOf(lineage).map((one) => [one.component, one.port, one.columns.length])).toEqual([
      ["a", "main", 1],
      ["b", "main", 0],
    ]);
  });
});
