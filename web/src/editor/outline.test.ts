import { describe, expect, it } from "vitest";
import { entryAt, entryOnLine, outline, plain } from "./outline";

const values = (text: string) => plain(outline(text));

describe("outline", () => {
  it("reads block mappings and lists", () => {
    expect(values("a: 1\nb:\n  c: x\n  d:\n    - p\n    - q: 2\n      r: true\n")).toEqual({
      a: 1,
      b: { c: "x", d: ["p", { q: 2, r: true }] },
    });
  });

  it("reads a list that is not indented below its key", () => {
    expect(values("steps:\n- step: a\n  tool: x\n- step: b\nend: 1")).toEqual({
      steps: [{ step: "a", tool: "x" }, { step: "b" }],
      end: 1,
    });
  });

  it("reads flow collections, also over several lines", () => {
    expect(
      values(
        'p: { path: out/a.csv, types: { sku: string, price: "decimal(10,2)" }, on: [sku, x] }\nq: [\n  a,\n  b\n]\nr: 1',
      ),
    ).toEqual({
      p: { path: "out/a.csv", types: { sku: "string", price: "decimal(10,2)" }, on: ["sku", "x"] },
      q: ["a", "b"],
      r: 1,
    });
  });

  it("keeps templates in quotes whole", () => {
    expect(
      values(`when: "{{ outcome.status == 'error' and x in [1, 2] }}"\nurl: "{{ workload.url }}/a: b # c"`),
    ).toEqual({
      when: "{{ outcome.status == 'error' and x in [1, 2] }}",
      url: "{{ workload.url }}/a: b # c",
    });
  });

  it("reads blocks of text, and what comes after them", () => {
    const root = outline("data: |\n  a.main -> b.input\n\n  c: not a key\ncontrol: |\n  a (ok) b\n");
    expect(plain(root)).toEqual({ data: "a.main -> b.input\n\nc: not a key", control: "a (ok) b" });
    expect(entryAt(root, ["data"])?.endLine).toBe(4);
  });

  it("leaves comments out", () => {
    expect(values("# first\na: 1 # one\n  # deeper\nb: x#y\n# last")).toEqual({ a: 1, b: "x#y" });
  });

  it("joins plain scalars that go on over lines", () => {
    expect(values("a: one\n  two\nb:\n  three")).toEqual({ a: "one two", b: "three" });
  });

  it("goes on after a bracket or a quote that is never closed", () => {
    expect(values("a: { x: 1, y: \nb: 2")).toEqual({ a: { x: 1, y: null }, b: 2 });
    expect(values('a: "never closed\nb: 2')).toEqual({ a: "never closed", b: 2 });
    expect(values("a: [1, 2\nb: 2")).toEqual({ a: [1, 2], b: 2 });
  });

  it("never fails on half a text", () => {
    const text =
      'kind: Job\ncomponents:\n  - name: a\n    params: { a: [1, {b: "x"}], c: | }\n  - \nconnections:\n  data: |\n    a -> b\n';
    for (let cut = 0; cut <= text.length; cut += 1) expect(() => outline(text.slice(0, cut))).not.toThrow();
  });

  it("says which lines an entry spans", () => {
    const root = outline("workflow:\n  - step: a\n    tool:\n      kind: noop\n\n  - step: b\n");
    expect(entryAt(root, ["workflow", 0])).toMatchObject({ line: 2, endLine: 4 });
    expect(entryOnLine(root, 4).path).toEqual(["workflow", 0, "tool", "kind"]);
    expect(entryOnLine(root, 6).path).toEqual(["workflow", 1, "step"]);
  });
});
