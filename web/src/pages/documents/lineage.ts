/** Which columns a column is made of, and which are made of it, however many steps away. */
import type { Lineage } from "./queries";

export interface Column {
  readonly component: string;
  readonly port: string | null;
  readonly column: string;
}

export interface Traced extends Column {
  /** How many steps away. */
  readonly steps: number;
}

export const idOf = (one: Column) => `${one.component}\n${one.port ?? ""}\n${one.column}`;

export function origins(lineage: Lineage, of: Column): Traced[] {
  return traced(lineage, of, "back");
}

export function uses(lineage: Lineage, of: Column): Traced[] {
  return traced(lineage, of, "forth");
}

function traced(lineage: Lineage, of: Column, way: "back" | "forth"): Traced[] {
  const next = new Map<string, Column[]>();
  for (const step of lineage.steps) {
    const from = { component: step.component, port: step.port, column: step.column };
    const into = { component: step.into_component, port: step.into_port, column: step.into_column };
    const [key, value] = way === "back" ? [idOf(into), from] : [idOf(from), into];
    const known = next.get(key);
    if (known === undefined) next.set(key, [value]);
    else known.push(value);
  }
  const found: Traced[] = [];
  const seen = new Set([idOf(of)]);
  let level: Column[] = [of];
  for (let steps = 1; level.length > 0; steps += 1) {
    const further: Column[] = [];
    for (const one of level) {
      for (const other of next.get(idOf(one)) ?? []) {
        if (seen.has(idOf(other))) continue;
        seen.add(idOf(other));
        found.push({ ...other, steps });
        further.push(other);
      }
    }
    level = further;
  }
  return found;
}

export interface PortColumns {
  readonly component: string;
  readonly port: string;
  readonly columns: readonly { name: string; type: string }[];
}

/** The ports with columns, in the order of the answer. */
export function portsOf(lineage: Lineage): PortColumns[] {
  return Object.entries(lineage.columns).map(([name, columns]) => {
    const dot = name.lastIndexOf(".");
    return { component: name.slice(0, dot), port: name.slice(dot + 1), columns };
  });
}
