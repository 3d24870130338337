/**
 * The layout of graphs, by ELK in a worker: a second of work for 200 nodes must not stop the page. It is loaded when the first graph
 * is laid out. The worker is a file of ours, because the policy of the page allows no other.
 */
import type { ELK, ElkNode } from "elkjs/lib/elk-api";
import workerUrl from "elkjs/lib/elk-worker.min.js?url";

let started: Promise<ELK> | undefined;

async function start(): Promise<ELK> {
  const { default: Elk } = await import("elkjs/lib/elk-api");
  return new Elk({ workerFactory: () => new Worker(workerUrl) });
}

export async function layout(graph: ElkNode): Promise<ElkNode> {
  started ??= start();
  return (await started).layout(graph);
}

export type { ElkExtendedEdge, ElkNode, ElkPort } from "elkjs/lib/elk-api";
