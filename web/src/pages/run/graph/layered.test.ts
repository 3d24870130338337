import { describe, expect, it } from "vitest";
import { graphOf, layoutOf } from "./elk";
import { layered, nearest } from "./layered";
import { isSimple, type Layout, type Plan, type Point, pathOf, planned } from "./layout";
import { pictured } from "./picture";
import { betterDirection } from "./place";
import { graph, link, node, WITH_JOBLET } from "./samples";

function plan(links: string[], direction: Plan["direction"] = "right"): Plan {
  const names = [...new Set(links.flatMap((one) => one.split(" ")))];
  return {
    direction,
    items: names.map((id) => ({ id, box: null, isBox: false, width: 160, height: 54 })),
    links: links.flatMap((one) => {
      const [source, target] = one.split(" ");
      return source && target ? [{ id: one, source, target, label: { width: 60, height: 16 } }] : [];
    }),
  };
}

function overlapping(layout: Layout): string[] {
  const all = Object.entries(layout.cards);
  return all.flatMap(([one, a], at) =>
    all
      .slice(at + 1)
      .filter(([, b]) => a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height)
      .map(([other]) => `${one} ${other}`),
  );
}

/** Cards that a link goes through, other than its own. */
function hit(layout: Layout): string[] {
  return Object.entries(layout.routes).flatMap(([id, route]) =>
    Object.entries(layout.cards).flatMap(([card, rect]) => {
      if (id.split(" ").includes(card)) return [];
      const inside = ([ax, ay]: Point, [bx, by]: Point) =>
        Math.max(ax, bx) > rect.x + 1 &&
        Math.min(ax, bx) < rect.x + rect.width - 1 &&
        Math.max(ay, by) > rect.y + 1 &&
        Math.min(ay, by) < rect.y + rect.height - 1;
      return route.points.some((point, at) => at > 0 && inside(route.points[at - 1] as Point, point))
        ? [`${id} through ${card}`]
        : [];
    }),
  );
}

const SAMPLES: Record<string, string[]> = {
  chain: ["a b", "b c", "c d"],
  diamond: ["a b", "a c", "b d", "c d"],
  long: ["a b", "b c", "c d", "a d", "a c"],
  cycle: ["a b", "b c", "c a", "c d", "d d"],
  wide: ["a b", "a c", "a d", "a e", "a f", "b g", "c g", "d g", "e g", "f g", "a g"],
  apart: ["a b", "c d", "e f"],
};

describe("our own layout", () => {
  for (const direction of ["right", "down"] as const) {
    for (const [name, links] of Object.entries(SAMPLES)) {
      it(`of a ${name} to the ${direction} has no cards on each other and no links through cards`, () => {
        const layout = layered(plan(links, direction));
        expect(overlapping(layout)).toEqual([]);
        expect(hit(layout)).toEqual([]);
        expect(Object.keys(layout.routes)).toHaveLength(links.length);
        for (const rect of Object.values(layout.cards)) {
          expect(Math.min(rect.x, rect.y)).toBeGreaterThanOrEqual(0);
          expect(rect.x + rect.width).toBeLessThanOrEqual(layout.width + 0.01);
          expect(rect.y + rect.height).toBeLessThanOrEqual(layout.height + 0.01);
        }
        for (const route of Object.values(layout.routes)) {
          // Only right angles.
          route.points.forEach(([x, y], at) => {
            const [bx, by] = route.points[at - 1] ?? [x, y];
            expect(Math.min(Math.abs(x - bx), Math.abs(y - by))).toBeLessThan(1.01);
          });
        }
      });
    }
  }

  it("puts what follows after what it follows", () => {
    const { cards } = layered(plan(SAMPLES.long ?? []));
    const order = ["a", "b", "c", "d"].map((id) => cards[id]?.x ?? 0);
    expect(order).toEqual([...order].sort((one, other) => one - other));
  });

  it("draws a chain as a straight line", () => {
    const { routes } = layered(plan(SAMPLES.chain ?? []));
    expect(Object.values(routes).map((route) => route.points.length)).toEqual([2, 2, 2]);
  });

  it("keeps what is in a box within it", () => {
    const layout = layered(planned(pictured(WITH_JOBLET, new Set(["s1", "s2", "clean/"])), "right"));
    const box = layout.boxes["n:clean"];
    const card = layout.cards["n:clean.trim"];
    expect(box && card && card.x > box.x && card.y > box.y && card.x + card.width < box.x + box.width).toBe(true);
  });

  it("is used for graphs whose links do not go through the walls of boxes", () => {
    expect(isSimple(planned(pictured(WITH_JOBLET, new Set()), "right"))).toBe(true);
    expect(isSimple(planned(pictured(WITH_JOBLET, new Set(["s1", "s2"])), "right"))).toBe(false);
  });

  it("draws a long chain downwards in a pane that is not wide", () => {
    const names = Array.from({ length: 7 }, (_, at) => `step${at}`);
    const chain = graph(
      names.map((name) => node(name)),
      names.slice(1).map((name, at) => link(`step${at}`, name)),
    );
    expect(betterDirection(pictured(chain, new Set()), { width: 700, height: 560 })).toBe("down");
    expect(betterDirection(pictured(chain, new Set()), { width: 2400, height: 400 })).toBe("right");
  });

  it("lays 300 nodes out in less than a second", () => {
    const many = Array.from({ length: 300 }, (_, at) => `n${Math.floor(at / 2)} n${at + 1}`);
    const begin = performance.now();
    expect(overlapping(layered(plan(many)))).toEqual([]);
    expect(performance.now() - begin).toBeLessThan(1000);
  });
});

describe("values that keep their distances", () => {
  it("stay where they are wanted if there is room", () => {
    expect(nearest([0, 50, 100], [0, 20, 20], [1, 1, 1])).toEqual([0, 50, 100]);
  });
  it("move apart evenly if there is none", () => {
    expect(nearest([10, 10], [0, 20], [1, 1])).toEqual([0, 20]);
  });
});

describe("paths", () => {
  it("have rounded corners", () => {
    expect(
      pathOf([
        [0, 0],
        [20, 0],
        [20, 40],
      ]),
    ).toBe("M0 0L13 0Q20 0 20 7L20 40");
  });
});

describe("the graph for ELK", () => {
  it("has boxes with what is in them, and labels only where there is one", () => {
    const made = graphOf(planned(pictured(WITH_JOBLET, new Set(["s1", "s2", "clean/"])), "right"));
    expect(made.children?.map((child) => child.id)).toEqual(["f:s1", "f:s2"]);
    expect(made.children?.[0]?.children?.map((child) => child.id)).toEqual(["n:clean", "n:read", "n:write"]);
    expect(made.edges).toHaveLength(5);
  });

  it("comes back as places and routes", () => {
    const asked = plan(["a b"]);
    const layout = layoutOf(asked, {
      id: "root",
      width: 400,
      height: 54,
      children: [
        { id: "a", x: 0, y: 0, width: 160, height: 54 },
        { id: "b", x: 240, y: 0, width: 160, height: 54 },
      ],
      edges: [
        {
          id: "a b",
          sources: ["a"],
          targets: ["b"],
          sections: [{ id: "s", startPoint: { x: 160, y: 27 }, endPoint: { x: 240, y: 27 } }],
        },
      ],
    });
    expect(layout.routes["a b"]).toEqual({
      points: [
        [160, 27],
        [240, 27],
      ],
      label: { x: 200, y: 18, anchor: "middle" },
    });
  });
});
