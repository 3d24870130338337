import { describe, expect, it } from "vitest";
import { cut, drawnAs, framesAround, openAtFirst, pictured, withoutOnlySubjob } from "./picture";
import { graph, link, node, WITH_JOBLET } from "./samples";

const ids = (all: readonly { id: string }[]) => all.map((one) => one.id);
const ends = (picture: ReturnType<typeof pictured>) =>
  picture.wires.map((wire) => `${wire.source} ${wire.target} ${wire.edges.length}`);

describe("what is drawn of a graph", () => {
  it("draws sub-jobs of a small job as boxes and its joblets as one card", () => {
    const open = openAtFirst(WITH_JOBLET);
    const picture = pictured(WITH_JOBLET, open);
    expect([...open]).toEqual(["s1", "s2"]);
    expect(ids(picture.boxes)).toEqual(["f:s1", "f:s2"]);
    expect(ids(picture.cards)).toEqual(["n:read", "n:clean", "n:write", "n:report"]);
    expect(picture.cards.find((card) => card.id === "n:clean")?.inside).toBe(2);
  });

  it("lets links end at the closed frame, and joins those that become the same", () => {
    const picture = pictured(WITH_JOBLET, new Set(["s1", "s2"]));
    expect(ends(picture)).toEqual(["n:read n:clean 1", "n:clean n:write 2", "n:read n:report 1"]);
  });

  it("draws an open joblet as a box in the place of its node", () => {
    const picture = pictured(WITH_JOBLET, new Set(["s1", "s2", "clean/"]));
    expect(picture.boxes.map((box) => [box.id, box.box])).toEqual([
      ["f:s1", null],
      ["f:s2", null],
      ["n:clean", "f:s1"],
    ]);
    expect(ids(picture.cards)).toEqual(["n:read", "n:clean.trim", "n:clean.check", "n:write", "n:report"]);
    expect(picture.cards.find((card) => card.id === "n:clean.trim")?.box).toBe("n:clean");
    expect(ends(picture)).toHaveLength(5);
  });

  it("draws a closed sub-job as one card, whatever is open in it", () => {
    const picture = pictured(WITH_JOBLET, new Set(["clean/"]));
    expect(ids(picture.cards)).toEqual(["f:s1", "f:s2"]);
    expect(picture.cards[0]?.type).toBe("4 components");
    expect(ends(picture)).toEqual(["f:s1 f:s2 1"]);
  });

  it("closes the sub-jobs of a large job", () => {
    const many = Array.from({ length: 60 }, (_, at) => node(`c${at}`, { frame: at < 30 ? "s1" : "s2" }));
    const large = graph(many, [], WITH_JOBLET.frames.slice(0, 2));
    expect(openAtFirst(large).size).toBe(0);
  });

  it("draws a step that leads back to itself, and links from a box to what is in it", () => {
    const around = graph(
      [node("each", { kind: "iterator", opens: "each/" }), node("each.load", { frame: "each/" }), node("poll")],
      [link("each", "each.load", { kind: "control" }), link("poll", "poll", { kind: "arc" })],
      [{ id: "each/", kind: "body", title: "each", parent: null, opener: "each" }],
    );
    expect(ends(pictured(around, new Set(["each/"])))).toEqual(["n:each n:each.load 1", "n:poll n:poll 1"]);
    expect(ends(pictured(around, new Set()))).toEqual(["n:poll n:poll 1"]);
  });

  it("draws no box around a job of one sub-job", () => {
    const only = withoutOnlySubjob(graph([node("a", { frame: "s1" })], [], WITH_JOBLET.frames.slice(0, 1)));
    expect(pictured(only, new Set(["s1"]))).toMatchObject({ boxes: [], cards: [{ id: "n:a", box: null }] });
    expect(withoutOnlySubjob(WITH_JOBLET)).toBe(WITH_JOBLET);
  });

  it("finds what a node is drawn as", () => {
    expect(framesAround(WITH_JOBLET, "clean.trim")).toEqual(["s1", "clean/"]);
    expect(drawnAs(WITH_JOBLET, pictured(WITH_JOBLET, new Set(["s1"])), "clean.trim")).toBe("n:clean");
    expect(drawnAs(WITH_JOBLET, pictured(WITH_JOBLET, new Set()), "clean.trim")).toBe("f:s1");
    expect(drawnAs(WITH_JOBLET, pictured(WITH_JOBLET, new Set()), "nobody")).toBeNull();
  });

  it("shortens a guard", () => {
    expect(cut("{{ event.status ==\n 'ok' }}")).toBe("{{ event.status == 'ok' }}");
    expect(cut("{{ ctx.total > workload.limit and not ctx.done }}")).toBe("{{ ctx.total > workload.l…");
  });
});
