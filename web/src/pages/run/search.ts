/** What the page of a run shows is in its address, so that any state of it can be sent to somebody else. */
import { oneOf, text, whole } from "@/search";
import { PANELS, type PanelName, VIEWS, type ViewName } from "./context";

export interface RunSearch {
  /** What fills the main pane. */
  view?: ViewName;
  /** What the side pane shows; `none` when it is closed. */
  panel?: PanelName | "none";
  /** The execution inside of the run. */
  scope?: string;
  /** The moment that is shown, as the number of an event; without it, now. */
  at?: number;
  /** The step or component that is selected, and which of its runs. */
  node?: string;
  part?: string;
  /** The link that is selected. */
  edge?: string;
  /** The event that is selected in the list. */
  event?: number;
  /** The line of the document that is marked: `FILE:LINE`. */
  line?: string;
  tab?: string;
  q?: string;
}

export function runSearch(raw: Record<string, unknown>): RunSearch {
  return {
    view: oneOf(raw.view, VIEWS),
    panel: oneOf(raw.panel, [...PANELS, "none"] as const),
    scope: text(raw.scope),
    at: whole(raw.at),
    node: text(raw.node),
    part: text(raw.part),
    edge: text(raw.edge),
    event: whole(raw.event),
    line: text(raw.line),
    tab: text(raw.tab),
    q: text(raw.q),
  };
}

export function readLine(line: string | undefined): { file: string; line: number } | null {
  const found = /^(.*):(\d+)$/.exec(line ?? "");
  return found === null ? null : { file: found[1] ?? "", line: Number(found[2]) };
}
