import { describe, expect, it } from "vitest";
import { blamed, type FormField, inputsOf, readAs, shown, structured } from "./form";

const field = (name: string, type: FormField["type"], value: unknown = null): FormField => ({
  name,
  type,
  default: value,
  is_secret: false,
});

describe("inputsOf", () => {
  const fields = [
    field("who", "string", "world"),
    field("count", "integer", 3),
    field("rows", "array", [1, 2]),
    field("fast", "boolean", false),
  ];

  it("gives only what differs from the defaults", () => {
    expect(inputsOf(fields, {})).toEqual({ payload: {}, errors: {} });
    expect(inputsOf(fields, { who: "world", count: "4", fast: "true" })).toEqual({
      payload: { count: 4, fast: true },
      errors: {},
    });
  });

  it("says what is wrong with each field", () => {
    const { payload, errors } = inputsOf(fields, { count: "4.5", rows: "{a: 1}", fast: "perhaps" });
    expect(payload).toEqual({});
    expect(errors).toEqual({
      count: "this must be a whole number, not `4.5`",
      rows: "this must be a list, such as `[1, 2]`",
      fast: "this must be `true` or `false`",
    });
  });

  it("takes further names, but no name twice", () => {
    expect(inputsOf(fields, {}, [{ name: "more", text: "[a, b]" }]).payload).toEqual({ more: ["a", "b"] });
    expect(inputsOf(fields, {}, [{ name: "who", text: "x" }]).errors).toEqual({
      "extra 0": "there is already a field `who`",
    });
    expect(inputsOf(fields, {}, [{ name: "", text: "x" }]).errors).toEqual({ "extra 0": "a name is needed" });
    expect(inputsOf(fields, {}, [{ name: "", text: "" }])).toEqual({ payload: {}, errors: {} });
  });
});

describe("readAs", () => {
  it("keeps a text as it is, also one that looks like a number", () => {
    expect(readAs("string", " 007 ")).toEqual({ value: " 007 " });
  });

  it("reads lists and mappings as JSON or YAML", () => {
    expect(readAs("array", '["a", 1]')).toEqual({ value: ["a", 1] });
    expect(readAs("array", "- a\n- b: 1")).toEqual({ value: ["a", { b: 1 }] });
    expect(readAs("object", "{a: 1, b: [x]}")).toEqual({ value: { a: 1, b: ["x"] } });
    expect(readAs("object", "a: 1\nb:\n  c: true")).toEqual({ value: { a: 1, b: { c: true } } });
    expect(readAs("array", "[1, 2")).toHaveProperty("error");
    expect(readAs("object", "")).toHaveProperty("error");
  });

  it("reads anything where the type is not known", () => {
    expect(readAs("any", "12")).toEqual({ value: 12 });
    expect(readAs("any", "hello there")).toEqual({ value: "hello there" });
    expect(readAs("any", "[1, 2")).toEqual({ value: "[1, 2" });
  });
});

describe("structured", () => {
  it("refuses what follows a closing bracket", () => {
    expect(structured("{a: 1} x")).toBeUndefined();
  });
});

describe("shown", () => {
  it("shows a default as it would be typed", () => {
    expect(shown(field("a", "string", "x"))).toBe("x");
    expect(shown(field("a", "object", { b: 1 }))).toBe('{"b":1}');
    expect(
      shown(
        field(
          "a",
          "array",
          Array.from({ length: 40 }, () => 1),
        ),
      ),
    ).toContain("[\n  1,");
    expect(shown(field("a", "any", null))).toBe("");
  });
});

describe("blamed", () => {
  it("finds the field that an error is about", () => {
    const fields = [field("limit", "integer"), field("who", "string")];
    expect(
      blamed(fields, "the request is not valid", [{ where: "body.payload.limit", message: "a number is wanted" }]),
    ).toEqual({ limit: "a number is wanted" });
    expect(blamed(fields, "there is no input `who`", [])).toEqual({ who: "there is no input `who`" });
  });
});
