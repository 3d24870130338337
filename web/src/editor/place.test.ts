import { describe, expect, it } from "vitest";
import { placeAt } from "./place";

/** The place of the `|` in a text. */
function at(text: string) {
  const offset = text.indexOf("¦");
  const place = placeAt(text.replace("¦", ""), offset);
  return place && { role: place.role, path: place.path.join("."), word: place.word, keys: place.keys.join(" ") };
}

describe("placeAt", () => {
  it("knows the mapping that a key belongs to", () => {
    expect(at("kind: Job\nme¦")).toEqual({ role: "key", path: "", word: "me", keys: "kind" });
    expect(at("metadata:\n  na¦\nb: 1")).toEqual({ role: "key", path: "metadata", word: "na", keys: "" });
    expect(at("a:\n  b: 1\n  ¦\nc: 1")).toEqual({ role: "key", path: "a", word: "", keys: "b" });
  });

  it("goes by the column of the cursor on an empty line", () => {
    const text = (indent: string) => `workflow:\n  - step: a\n    tool:\n      kind: http\n${indent}¦\n`;
    expect(at(text("      "))).toMatchObject({ role: "key", path: "workflow.0.tool", keys: "kind" });
    expect(at(text("    "))).toMatchObject({ role: "key", path: "workflow.0", keys: "step tool" });
    expect(at(text(""))).toMatchObject({ role: "key", path: "", keys: "workflow" });
  });

  it("opens a new mapping below a key without a value", () => {
    expect(at("a:\n  b:\n    ¦")).toMatchObject({ role: "key", path: "a.b" });
  });

  it("knows the entry that a value belongs to", () => {
    expect(at("components:\n  - name: a\n    type: read_¦\n")).toEqual({
      role: "value",
      path: "components.0.type",
      word: "read_",
      keys: "",
    });
    expect(at('a:\n  b: "x y¦"\n')).toMatchObject({ role: "value", path: "a.b", word: "x y" });
    expect(at("a: ¦\nb: 1")).toMatchObject({ role: "value", path: "a", word: "" });
  });

  it("knows the entry of a list, which may be a scalar or begin a mapping", () => {
    expect(at("arcs:\n  - step: a\n  - st¦")).toMatchObject({ role: "item", path: "arcs.1", word: "st" });
    expect(at("arcs:\n  - ¦")).toMatchObject({ role: "item", path: "arcs.0", word: "" });
  });

  it("knows its way in flow collections", () => {
    expect(at("params: { path: a.csv, ¦ }")).toMatchObject({ role: "key", path: "params", keys: "path" });
    expect(at("params: { path: a.csv, he¦: true }")).toMatchObject({ role: "key", path: "params", word: "he" });
    expect(at("params: { on: [a, b¦], x: 1 }")).toMatchObject({ role: "item", path: "params.on.1", word: "b" });
    expect(at("params: { how: in¦ }")).toMatchObject({ role: "value", path: "params.how", word: "in" });
    expect(at("then: { do: ¦\nelse: 1")).toMatchObject({ role: "value", path: "then.do" });
    expect(at("a: { b: { c¦")).toMatchObject({ role: "key", path: "a.b", word: "c" });
  });

  it("knows blocks of text", () => {
    expect(at("connections:\n  data: |\n    a.main -> b¦\n  control: |\n")).toMatchObject({
      role: "text",
      path: "connections.data",
      word: "b",
    });
    expect(at("connections:\n  data: |\n    a -> b\n    ¦")).toMatchObject({
      role: "text",
      path: "connections.data",
      word: "",
    });
    expect(at("connections:\n  data: |\n    a -> b\n  ¦")).toMatchObject({ role: "key", path: "connections" });
  });

  it("has nothing to say in a comment", () => {
    expect(at("a: 1 # com¦")).toBeNull();
    expect(at("# com¦")).toBeNull();
  });

  it("sees the rest of a text that is half written", () => {
    const place = placeAt("components:\n  - name: a\n    type: filter\n    params:\n      \n  - name: b\n", 58);
    expect(place?.path).toEqual(["components", 0, "params"]);
    expect(place?.root.children[0]?.children.length).toBe(2);
  });
});
