import { describe, expect, it } from "vitest";
import { cellOf, isNumeric, isOfRejects, rejectOf, widthsOf } from "./cells";

const column = (name: string, type = "VARCHAR") => ({ name, type });

describe("cells", () => {
  it("tell NULL, nothing and text apart", () => {
    expect([null, "", "NULL", 0, false, { a: 1 }].map(cellOf)).toEqual([
      { text: "NULL", kind: "null" },
      { text: "empty", kind: "empty" },
      { text: "NULL", kind: "text" },
      { text: "0", kind: "number" },
      { text: "false", kind: "other" },
      { text: '{"a":1}', kind: "other" },
    ]);
  });

  it("of numbers are known by their type", () => {
    const numeric = ["BIGINT", "integer", "DECIMAL(10,2)", "double", "UINTEGER", "HUGEINT", "float"];
    expect(numeric.filter((type) => !isNumeric(column("x", type)))).toEqual([]);
    expect(
      ["VARCHAR", "TIMESTAMP", "INTERVAL", "DATE", "BOOLEAN"].filter((type) => isNumeric(column("x", type))),
    ).toEqual([]);
  });

  it("get room for what they say, within bounds", () => {
    const [narrow, wide] = widthsOf([column("a", "INT"), column("text")], [[1, "x".repeat(500)]]);
    expect(narrow).toBe(56);
    expect(wide).toBe(340);
  });
});

it("a reject is its reason, its place and its line", () => {
  const columns = ["error_code", "error_message", "file", "line", "column", "raw_line", "found_in"].map((name) =>
    column(name),
  );
  expect(isOfRejects(columns)).toBe(true);
  expect(rejectOf(columns, ["BAD_TYPE", "`x` is no number", "orders.csv", 4, "price", "1,2,x", null])).toEqual({
    code: "BAD_TYPE",
    message: "`x` is no number",
    file: "orders.csv",
    line: "4",
    column: "price",
    raw: "1,2,x",
    rest: [{ name: "found_in", cell: { text: "NULL", kind: "null" } }],
  });
});
