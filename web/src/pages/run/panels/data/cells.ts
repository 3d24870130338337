/** Cells of rows as text, and how wide their columns are. */
import type { Column } from "../ask";

const NUMBERS =
  /^(tiny|small|big|huge|u(tiny|small|big|huge)?)?int(eger)?\d*\b|^(decimal|numeric|double|float|real|number)/i;

export function isNumeric(column: Column): boolean {
  return NUMBERS.test(column.type);
}

export interface Cell {
  text: string;
  kind: "null" | "text" | "number" | "other" | "empty";
}

export function cellOf(value: unknown): Cell {
  if (value === null || value === undefined) return { text: "NULL", kind: "null" };
  if (value === "") return { text: "empty", kind: "empty" };
  if (typeof value === "string") return { text: value, kind: "text" };
  if (typeof value === "number") return { text: String(value), kind: "number" };
  return { text: typeof value === "object" ? JSON.stringify(value) : String(value), kind: "other" };
}

const LETTER = 7.3;
const LEAST = 56;
const MOST = 340;

/** In pixels, from the heads and some of the rows. */
export function widthsOf(columns: readonly Column[], rows: readonly (readonly unknown[])[], sample = 60): number[] {
  return columns.map((column, at) => {
    // Heads are bold and may be all `m`s; types are small.
    let longest = Math.max(column.name.length * 1.35, column.type.length * 0.95);
    for (const row of rows.slice(0, sample)) longest = Math.max(longest, cellOf(row[at]).text.length);
    return Math.round(Math.min(MOST, Math.max(LEAST, longest * LETTER + 22)));
  });
}

export interface Reject {
  code: string;
  message: string;
  file: string;
  line: string;
  column: string;
  raw: string;
  /** What else the row has. */
  rest: readonly { name: string; cell: Cell }[];
}

const OWN = ["error_code", "error_message", "file", "line", "column", "raw_line"];

export function isOfRejects(columns: readonly Column[]): boolean {
  return columns.some((column) => column.name === "error_message");
}

export function rejectOf(columns: readonly Column[], row: readonly unknown[]): Reject {
  const said = (name: string) => {
    const value = row[columns.findIndex((column) => column.name === name)];
    return value === null || value === undefined ? "" : String(value);
  };
  return {
    code: said("error_code"),
    message: said("error_message"),
    file: said("file"),
    line: said("line"),
    column: said("column"),
    raw: said("raw_line"),
    rest: columns.flatMap((column, at) =>
      OWN.includes(column.name) ? [] : [{ name: column.name, cell: cellOf(row[at]) }],
    ),
  };
}
