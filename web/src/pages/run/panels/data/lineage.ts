/** Ways through the lineage of a job: what a column is made of, and what is made of it. */
import type { LineageStep } from "../ask";

export interface Field {
  component: string;
  port: string | null;
  column: string;
}

export type Way = readonly Field[];

export interface Ways {
  /** From where a column begins to where it ends, in the direction of the rows. */
  ways: readonly Way[];
  /** There are more than are listed. */
  isCut: boolean;
}

const nameOf = (field: Field) => JSON.stringify([field.component, field.column]);
const keyOf = (field: Field) => JSON.stringify([field.component, field.port, field.column]);
/** A port that is not named is any port of its component. */
const isSame = (one: Field, other: Field) => one.port === null || other.port === null || one.port === other.port;

/** Every way from a column back to where it begins, or on to where it ends. Each begins with what is made first. */
export function waysOf(steps: readonly LineageStep[], from: Field, direction: "back" | "on", most = 40): Ways {
  const next = new Map<string, [Field, Field][]>();
  for (const step of steps) {
    const source = { component: step.component, port: step.port, column: step.column };
    const target = { component: step.into_component, port: step.into_port, column: step.into_column };
    const pair: [Field, Field] = direction === "back" ? [target, source] : [source, target];
    const name = nameOf(pair[0]);
    next.set(name, [...(next.get(name) ?? []), pair]);
  }
  const ways: Field[][] = [];
  let isCut = false;
  const go = (way: Field[], seen: ReadonlySet<string>) => {
    const last = way.at(-1) as Field;
    const all = (next.get(nameOf(last)) ?? []).filter(([here]) => isSame(here, last)).map(([, other]) => other);
    const further = all.filter((field) => !seen.has(keyOf(field)));
    for (const field of further) {
      if (isCut) return;
      go([...way, field], new Set([...seen, keyOf(field)]));
    }
    if (further.length > 0 || way.length === 1) return;
    if (ways.length >= most) isCut = true;
    else ways.push(direction === "back" ? [...way].reverse() : way);
  };
  go([from], new Set([keyOf(from)]));
  return { ways, isCut };
}

/** The components that the rows of one depend on, the nearest last; the component itself is the last. */
export function upstream(
  edges: readonly { source: string; target: string; kind: string }[],
  component: string,
): string[] {
  const found = new Set<string>([component]);
  const waiting = [component];
  while (waiting.length > 0) {
    const here = waiting.shift();
    for (const edge of edges) {
      if (edge.kind !== "data" || edge.target !== here || found.has(edge.source)) continue;
      found.add(edge.source);
      waiting.push(edge.source);
    }
  }
  return [...found].reverse();
}
