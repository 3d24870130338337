import { describe, expect, it } from "vitest";
import { legible } from "./labels";
import type { Layout, Plan, Route } from "./layout";

const PLAN: Plan = {
  direction: "right",
  items: [],
  links: ["near", "far"].map((id) => ({ id, source: "a", target: "b", label: { width: 80, height: 14 } })),
};

function layout(near: Route, far: Route["points"]): Layout {
  return {
    width: 400,
    height: 100,
    cards: {},
    boxes: {},
    routes: { near, far: { points: far, label: { x: 200, y: 1000, anchor: "middle" } } },
  };
}

const LEVEL: Route = {
  points: [
    [100, 50],
    [300, 50],
  ],
  label: { x: 200, y: 41, anchor: "middle" },
};

describe("labels", () => {
  it("stay where they are when nothing goes through them", () => {
    const made = legible(
      layout(LEVEL, [
        [0, 0],
        [400, 0],
      ]),
      PLAN,
    );
    expect(made.routes.near).toBe(LEVEL);
  });

  it("move along their link when another one crosses it", () => {
    const made = legible(
      layout(LEVEL, [
        [200, 0],
        [200, 100],
      ]),
      PLAN,
    );
    expect(made.routes.near?.label).toEqual({ x: 150, y: 41, anchor: "middle" });
  });

  it("go below their link when another one runs beside it", () => {
    const made = legible(
      layout(LEVEL, [
        [0, 40],
        [400, 40],
      ]),
      PLAN,
    );
    expect(made.routes.near?.label).toEqual({ x: 200, y: 59, anchor: "middle", isBelow: true });
  });

  it("stay when it is nowhere better", () => {
    const links: [number, number][] = [
      [0, 40],
      [400, 40],
      [400, 60],
      [0, 60],
      [0, 71],
      [400, 71],
    ];
    const made = legible(layout(LEVEL, links), PLAN);
    expect(made.routes.near?.label).toEqual(LEVEL.label);
  });

  it("of links that go down stand beside them, out of the way", () => {
    const made = legible(
      layout(LEVEL, [
        [0, 40],
        [400, 40],
      ]),
      { ...PLAN, direction: "down" },
    );
    expect(made.routes.near).toBe(LEVEL);
  });
});
