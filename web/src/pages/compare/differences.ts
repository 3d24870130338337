/** What a comparison of two runs comes to. */
import type { components } from "@/api/schema";

type Schemas = components["schemas"];
export type Compared = Schemas["CompareOut"];
export type Side = Schemas["SideOut"];
export type NodeDifference = Schemas["NodeDifferenceOut"];
export type EdgeDifference = Schemas["EdgeDifferenceOut"];

/** Times differ between any two runs: they are shown, and make no difference. */
export function isDifferent(node: NodeDifference): boolean {
  return node.differs.some((what) => what !== "time");
}

export function isSame(compared: Compared): boolean {
  return (
    compared.same_document &&
    compared.inputs.length === 0 &&
    compared.first === null &&
    compared.left.status === compared.right.status &&
    !compared.nodes.some(isDifferent) &&
    !compared.edges.some((edge) => edge.differs)
  );
}

/** In one line: what differs, the most telling first. */
export function verdictOf(compared: Compared): string {
  if (isSame(compared)) {
    return compared.is_complete
      ? "The runs are the same: document, inputs, every decision and every count"
      : "The runs are the same as far as they were compared: they are too long to be compared to the end";
  }
  const count = (number: number, word: string) => `${number.toLocaleString("en")} ${number === 1 ? word : `${word}s`}`;
  const nodes = compared.nodes.filter(isDifferent).length;
  const links = compared.edges.filter((edge) => edge.differs);
  const carried = links.filter((edge) => (edge.left?.rows ?? null) !== (edge.right?.rows ?? null)).length;
  const settled = links.length - carried;
  const parts = [
    compared.left.status !== compared.right.status && `one ${compared.left.status}, the other ${compared.right.status}`,
    !compared.same_document && "the documents differ",
    compared.inputs.length > 0 &&
      `${count(compared.inputs.length, "input")} ${compared.inputs.length === 1 ? "differs" : "differ"}`,
    nodes > 0 && `${count(nodes, "node")} ${nodes === 1 ? "differs" : "differ"}`,
    carried > 0 && `${count(carried, "link")} carried different numbers of rows`,
    settled > 0 && `${count(settled, "link")} fired in one and not in the other`,
  ].filter((part): part is string => part !== false);
  if (parts.length === 0) parts.push("the results are the same, reached by different decisions");
  const text = parts.join("; ");
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

export interface Parted {
  before: string;
  left: string;
  right: string;
  after: string;
}

/** Two lines as what they begin with alike, what differs, and what they end with alike. */
export function parted(left: string, right: string): Parted {
  const least = Math.min(left.length, right.length);
  let start = 0;
  while (start < least && left[start] === right[start]) start += 1;
  let end = 0;
  while (end < least - start && left[left.length - 1 - end] === right[right.length - 1 - end]) end += 1;
  return {
    before: left.slice(0, start),
    left: left.slice(start, left.length - end),
    right: right.slice(start, right.length - end),
    after: left.slice(left.length - end),
  };
}

export type Run = Schemas["RunOut"];

/** Runs to compare with one: of the same document first, the newest first. */
export function candidates(runs: readonly Run[], other: string | undefined): { same: Run[]; rest: Run[] } {
  const known = runs.find((one) => one.execution_id === other || (other !== undefined && one.label === other));
  const left = runs.filter((one) => one !== known);
  if (known === undefined) return { same: [], rest: left };
  const isOfSame = (one: Run) => one.name === known.name && one.kind === known.kind;
  return { same: left.filter(isOfSame), rest: left.filter((one) => !isOfSame(one)) };
}

/** How much longer or shorter, as people say it: `2.1 × as long`; nothing for what nobody notices. */
export function timesOf(left: number, right: number): string {
  if (left <= 0 || right <= 0 || Math.abs(left - right) < 20) return "";
  const ratio = right / left;
  if (ratio > 0.8 && ratio < 1.25) return "";
  return ratio >= 1
    ? `${ratio.toFixed(ratio < 10 ? 1 : 0)}× as long`
    : `${(1 / ratio).toFixed(1 / ratio < 10 ? 1 : 0)}× as fast`;
}
