import { lazy, Suspense, useCallback } from "react";
import { chunk } from "@/chunks";
import { EmptyState, Icon, Loading, names } from "@/ui";
import type { Examination } from "./useExamined";

const GraphView = lazy(chunk(() => import("../run/graph/GraphView").then((module) => ({ default: module.GraphView }))));

interface Props {
  /** Names the document: open frames are kept under this. */
  id: string;
  examination: Examination;
  node: string | null;
  onSelect: (node: string | null) => void;
}

const none = () => undefined;

/** The graph of the document as far as it can be read; the last good one stays while the text is half written. */
export function GraphPane({ id, examination, node, onSelect }: Props) {
  const { graph, isStale, answer, error } = examination;
  const select = useCallback((chosen: string | null) => onSelect(chosen), [onSelect]);
  if (graph === null) {
    if (answer === null && error === null) return <Loading />;
    return (
      <EmptyState icon="graph" title="No graph yet">
        It appears once steps or components can be read from the text.
      </EmptyState>
    );
  }
  return (
    <div className={names("document-graph", isStale && "is-stale")}>
      {isStale && (
        <p className="document-stale" role="status">
          <Icon name="info" size={14} /> As it was before the last changes: the text has errors now.
        </p>
      )}
      <div className="document-graph-canvas">
        <Suspense fallback={<Loading />}>
          <GraphView
            id={`document ${id}`}
            graph={graph}
            moment={undefined}
            node={node}
            edge={null}
            select={select}
            selectEdge={none}
          />
        </Suspense>
      </div>
    </div>
  );
}
