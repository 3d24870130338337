import { describe, expect, it } from "vitest";
import type { LineageStep } from "../ask";
import { upstream, type Way, waysOf } from "./lineage";

function step(from: string, to: string): LineageStep {
  const [component = "", port = "", column = ""] = from.split(".");
  const [into_component = "", into_port = "", into_column = ""] = to.split(".");
  return { component, port: port || null, column, into_component, into_port: into_port || null, into_column };
}

const field = (text: string) => {
  const [component = "", port = "", column = ""] = text.split(".");
  return { component, port: port || null, column };
};
const told = (ways: readonly Way[]) =>
  ways.map((way) => way.map((one) => `${one.component}.${one.column}`).join(" > "));

const steps = [
  step("orders.main.price", "sold.main.price"),
  step("orders.main.quantity", "sold.main.quantity"),
  step("sold.main.price", "priced.main.total"),
  step("sold.main.quantity", "priced.main.total"),
  step("customers.main.segment", "priced.main.total"),
  step("priced.main.total", "named.main.total"),
  step("named.main.total", "write.." + "total"),
  step("named.main.total", "per_country.main.total"),
];

describe("lineage", () => {
  it("goes back to where a column begins", () => {
    expect(told(waysOf(steps, field("priced.main.total"), "back").ways)).toEqual([
      "orders.price > sold.price > priced.total",
      "orders.quantity > sold.quantity > priced.total",
      "customers.segment > priced.total",
    ]);
  });

  it("goes on to where it ends", () => {
    expect(told(waysOf(steps, field("priced.main.total"), "on").ways)).toEqual([
      "priced.total > named.total > write.total",
      "priced.total > named.total > per_country.total",
    ]);
  });

  it("is empty for a column that is made there", () => {
    expect(waysOf(steps, field("orders.main.price"), "back")).toEqual({ ways: [], isCut: false });
  });

  it("ends, though columns go in a circle, and lists no more than asked for", () => {
    const round = [step("a.main.x", "b.main.x"), step("b.main.x", "a.main.x")];
    expect(told(waysOf(round, field("a.main.x"), "on").ways)).toEqual(["a.x > b.x"]);
    const wide = Array.from({ length: 100 }, (_, at) => step("a.main.x", `b${at}.main.x`));
    expect(waysOf(wide, field("a.main.x"), "on", 10)).toMatchObject({ isCut: true, ways: { length: 10 } });
  });

  it("tells ports apart", () => {
    const two = [step("a.main.x", "b.main.x"), step("a.reject.x", "c.main.x")];
    expect(told(waysOf(two, field("a.reject.x"), "on").ways)).toEqual(["a.x > c.x"]);
  });
});

it("the rows of a component depend on those before it", () => {
  const edges = [
    { source: "a", target: "b", kind: "data" },
    { source: "b", target: "c", kind: "data" },
    { source: "x", target: "c", kind: "data" },
    { source: "y", target: "c", kind: "control" },
    { source: "c", target: "d", kind: "data" },
  ];
  expect(upstream(edges, "c")).toEqual(["a", "x", "b", "c"]);
});
