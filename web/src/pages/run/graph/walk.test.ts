import { describe, expect, it } from "vitest";
import { layered } from "./layered";
import { planned } from "./layout";
import { pictured } from "./picture";
import { graph, link, node } from "./samples";
import { first, type Way, walked } from "./walk";

// start → a → end, start → b → end
const diamond = graph(
  ["start", "a", "b", "end"].map((id) => node(id)),
  [link("start", "a"), link("start", "b"), link("a", "end"), link("b", "end")],
);
const picture = pictured(diamond, new Set());
const layout = layered(planned(picture, "right"));
const walk = (from: string | null, ...ways: Way[]) =>
  ways.reduce<string | null>((at, way) => walked(picture, layout, at, way, "right"), from);

describe("walking through a graph", () => {
  it("begins with what nothing leads to", () => {
    expect(first(picture, layout)).toBe("n:start");
    expect(walk(null, "right")).toBe("n:start");
  });
  it("goes along links, and to the neighbour across them", () => {
    expect(walk("n:start", "right")).toBe("n:a");
    expect(walk("n:start", "right", "down")).toBe("n:b");
    expect(walk("n:start", "right", "down", "up")).toBe("n:a");
    expect(walk("n:start", "right", "down", "right")).toBe("n:end");
    expect(walk("n:end", "left", "left")).toBe("n:start");
  });
  it("stays where nothing more is", () => {
    expect(walk("n:end", "right")).toBeNull();
    expect(walk("n:a", "up")).toBeNull();
  });
});
