// What the views of one run share: they show one moment of one execution, and move together.
import { createContext, useContext } from "react";
import type { components } from "../../api/schema";

type Schemas = components["schemas"];
export type Graph = Schemas["GraphOut"];
export type GraphNode = Schemas["GraphNodeOut"];
export type GraphEdge = Schemas["GraphEdgeOut"];
export type Moment = Schemas["MomentOut"];
export type NodeState = Schemas["NodeStateOut"];
export type EdgeState = Schemas["EdgeStateOut"];
export type Marks = Schemas["MarksOut"];

export const VIEWS = ["graph", "timeline", "events", "logs", "document"] as const;
/** What fills the main pane. */
export type ViewName = (typeof VIEWS)[number];

export const PANELS = ["why", "values", "data"] as const;
/** What the side pane says about the selection. */
export type PanelName = (typeof PANELS)[number];

export interface RunPage {
  readonly run: string;
  /** The execution that is shown: empty for the run itself, otherwise one inside it. */
  readonly scope: string;
  /** The event that everything is shown right after; null follows the run. */
  readonly at: number | null;
  readonly moment: Moment | undefined;
  readonly graph: Graph | undefined;
  readonly marks: Marks | undefined;
  /** The selected step or component, by its id in the graph. */
  readonly node: string | null;
  /** One run of it, by its scope, such as `fetch@2` or `fetch@2[5]`; null is the latest. */
  readonly part: string | null;
  /** The selected link, by its id in the graph. */
  readonly edge: string | null;
  /** The selected event in the list of events. */
  readonly event: number | null;
  readonly view: ViewName;
  readonly panel: PanelName;
  /** Lines of the document to mark, and where they were asked for from. */
  readonly line: { file: string; line: number } | null;
  select(node: string | null, part?: string | null): void;
  selectEdge(edge: string | null): void;
  /** Goes to the moment right after an event; null follows the run again. */
  goTo(seq: number | null): void;
  stepInto(scope: string): void;
  show(view: ViewName): void;
  showPanel(panel: PanelName): void;
  showEvent(seq: number): void;
  showLine(file: string, line: number): void;
}

export const RunPageContext = createContext<RunPage | null>(null);

export function useRunPage(): RunPage {
  const page = useContext(RunPageContext);
  if (page === null) throw new Error("useRunPage is used outside of a run's page");
  return page;
}
