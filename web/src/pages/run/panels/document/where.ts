/** Between the lines of documents and the nodes of a graph. */
import type { Graph, GraphNode } from "../../context";

/** The node that a line belongs to: the innermost whose lines hold it. */
export function nodeAt(graph: Graph | undefined, file: string, line: number): GraphNode | null {
  let found: GraphNode | null = null;
  for (const node of graph?.nodes ?? []) {
    if (node.file !== file || node.line === null) continue;
    const end = node.end_line ?? node.line;
    if (line < node.line || line > end) continue;
    if (found === null || end - node.line < (found.end_line ?? found.line ?? 0) - (found.line ?? 0)) found = node;
  }
  return found;
}

/** The lines of a node; null when nobody knows them. */
export function linesOf(node: GraphNode | undefined): readonly [number, number] | null {
  if (node === undefined || node.line === null) return null;
  return [node.line, Math.max(node.line, node.end_line ?? node.line)];
}

/** Files as tabs name them: the last part of the path, with as many folders before it as it takes to tell them apart. */
export function shortNames(files: readonly string[]): string[] {
  const parts = files.map((file) => file.split("/").filter((part) => part !== ""));
  return parts.map((own, at) => {
    for (let count = 1; count <= own.length; count += 1) {
      const name = own.slice(-count).join("/");
      const isOwn = parts.every((other, index) => index === at || other.slice(-count).join("/") !== name);
      if (isOwn) return name;
    }
    return files[at] ?? "";
  });
}

/** The path of a document of the catalog, from the address by which a run names it: `catalog:/PATH@3`, or `catalog:/PROJECT@3/FILE` of a
 * project. Null for a file. */
export function catalogPath(file: string): string | null {
  const found = /^catalog:\/(.+?)@\d+(\/.+)?$/.exec(file);
  return found === null ? null : `${found[1]}${found[2] ?? ""}`;
}
