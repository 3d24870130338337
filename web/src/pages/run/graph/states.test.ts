import { describe, expect, it, vi } from "vitest";
import type { NodeState } from "../context";
import { States } from "./states";

const node = (status: string) => ({ status }) as NodeState;

describe("states", () => {
  it("tell only those whose state has changed", () => {
    const states = new States();
    const load = node("running");
    const heard = { load: vi.fn(), sort: vi.fn() };
    states.show({ nodes: { load, sort: node("waiting") }, edges: {}, frames: {} });
    states.watch("node", ["load"], heard.load);
    states.watch("node", ["sort"], heard.sort);
    expect(states.show({ nodes: { load, sort: node("running") }, edges: {}, frames: {} })).toBe(1);
    expect(heard.load).not.toHaveBeenCalled();
    expect(heard.sort).toHaveBeenCalledOnce();
  });
  it("forget what a moment does not know", () => {
    const states = new States();
    states.show({ nodes: { load: node("ok") }, edges: {}, frames: {} });
    states.show({ nodes: {}, edges: {}, frames: {} });
    expect(states.node("load")).toBeUndefined();
  });
  it("move the selection", () => {
    const states = new States();
    const heard = vi.fn();
    states.watch("selected", ["n:a"], heard);
    states.select(["n:a"]);
    states.select(["n:a"]);
    states.select(["n:b"]);
    expect(heard).toHaveBeenCalledTimes(2);
    expect([states.isSelected("n:a"), states.isSelected("n:b")]).toEqual([false, true]);
  });
});
