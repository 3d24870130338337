import type { RunPage } from "../context";

/** What is selected, in a few words. */
export function titleOf(page: Pick<RunPage, "node" | "part" | "edge" | "graph">): string {
  if (page.node !== null) return page.part ?? page.graph?.nodes.find((one) => one.id === page.node)?.title ?? page.node;
  if (page.edge !== null) {
    const edge = page.graph?.edges.find((one) => one.id === page.edge);
    return edge === undefined ? `link ${page.edge}` : `${edge.source} → ${edge.target}`;
  }
  return "The run";
}
