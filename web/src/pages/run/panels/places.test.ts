import { describe, expect, it } from "vitest";
import { componentOf, elementOf, executionOf, partsOf, placeIn } from "./places";

const inside = [{ scope: "call@1/" }, { scope: "call@1/deep@0/" }];

describe("places", () => {
  it("finds the component of a scope, through joblets and iterations", () => {
    expect(componentOf("load")).toBe("load");
    expect(componentOf("clean.__tidy")).toBe("clean.__tidy");
    expect(componentOf("each[#3].load")).toBe("load");
    expect(componentOf("each[#3].__tidy")).toBe("each.__tidy");
    expect(componentOf("outer[#1].each[#3].__tidy")).toBe("each.__tidy");
  });

  it("finds the innermost execution", () => {
    expect(executionOf("call@1/deep@0/x@0", inside)).toBe("call@1/deep@0/");
    expect(executionOf("call@1/y@0", inside)).toBe("call@1/");
    expect(executionOf("call@10/y@0", inside)).toBe("");
  });

  it("finds the node and its run", () => {
    expect(placeIn("fetch@2[5]", [])).toEqual({ execution: "", node: "fetch", part: "fetch@2[5]" });
    expect(placeIn("call@1/y@0", inside)).toEqual({ execution: "call@1/", node: "y", part: "call@1/y@0" });
    expect(placeIn("each[#3].load", [])).toEqual({ execution: "", node: "load", part: "each[#3].load" });
    expect(placeIn("each[#3]", [])).toEqual({ execution: "", node: "each", part: "each[#3]" });
    expect(placeIn("<orders>", [])).toEqual({ execution: "", node: "orders", part: null });
    expect(placeIn("", [])).toEqual({ execution: "", node: null, part: null });
  });

  it("takes the index off a run, and puts it back", () => {
    expect(partsOf("fetch@2[5]")).toEqual({ run: "fetch@2", index: 5 });
    expect(partsOf("each[#3]")).toEqual({ run: "each", index: 3 });
    expect(partsOf("fetch@2")).toEqual({ run: "fetch@2", index: null });
    expect(elementOf("fetch@2", 5, false)).toBe("fetch@2[5]");
    expect(elementOf("each", 3, true)).toBe("each[#3]");
  });
});
