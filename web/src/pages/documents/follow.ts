/** Between the text of a document and its graph. */
import type { DocumentProblem, Graph } from "./queries";

type GraphNode = Graph["nodes"][number];

/** Whether two names of a file mean the same one: an answer may give it relative to the project or as a whole path. */
export function isSameFile(one: string, other: string): boolean {
  if (one === other) return true;
  const [short, long] = one.length < other.length ? [one, other] : [other, one];
  return short !== "" && long.endsWith(`/${short.replace(/^\.\//, "")}`);
}

/** The innermost node whose lines a line is among. */
export function nodeAt(graph: Graph, file: string, line: number): GraphNode | undefined {
  let found: GraphNode | undefined;
  for (const node of graph.nodes) {
    if (node.line === null || !isSameFile(node.file, file)) continue;
    const last = node.end_line ?? node.line;
    if (line < node.line || line > last) continue;
    if (found === undefined || last - node.line < (found.end_line ?? 0) - (found.line ?? 0)) found = node;
  }
  return found;
}

/** The line of a node in this file, or of the node that opens the frame it lies in. */
export function lineOf(graph: Graph, file: string, id: string): number | undefined {
  let node = graph.nodes.find((one) => one.id === id);
  for (let steps = 0; node !== undefined && steps < 20; steps += 1) {
    if (node.line !== null && isSameFile(node.file, file)) return node.line;
    const frame = graph.frames.find((one) => one.id === node?.frame);
    node = graph.nodes.find((one) => one.id === frame?.opener);
  }
  return undefined;
}

export interface SortedProblems {
  readonly here: readonly DocumentProblem[];
  readonly elsewhere: readonly DocumentProblem[];
  readonly errors: number;
  readonly warnings: number;
}

const RANK: Record<string, number> = { error: 0, warning: 1 };

/** Errors first, then by line; those of other files apart. */
export function sorted(problems: readonly DocumentProblem[], file: string): SortedProblems {
  const rank = (problem: DocumentProblem) => RANK[problem.severity ?? "error"] ?? 2;
  const all = [...problems].sort(
    (a, b) => rank(a) - rank(b) || (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0),
  );
  const isHere = (problem: DocumentProblem) => !problem.file || isSameFile(problem.file, file);
  return {
    here: all.filter(isHere),
    elsewhere: all.filter((problem) => !isHere(problem)),
    errors: all.filter((problem) => rank(problem) === 0).length,
    warnings: all.filter((problem) => rank(problem) === 1).length,
  };
}
