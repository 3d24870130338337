/** What the head of the page says. */
import type { Moment } from "../context";

export interface Crumb {
  scope: string;
  label: string;
}

/** The way from the run to the execution that is shown. */
export function crumbsOf(moment: Pick<Moment, "name" | "scope" | "executions">): Crumb[] {
  const known = new Map(moment.executions.map((one) => [one.scope, one]));
  const found: Crumb[] = [];
  const seen = new Set<string>();
  for (let at = moment.scope; at !== "" && !seen.has(at); ) {
    seen.add(at);
    const one = known.get(at);
    found.unshift({ scope: at, label: one === undefined ? at : one.name });
    at = one?.parent ?? "";
  }
  // The name of the moment is that of the run, whatever is shown of it.
  return [{ scope: "", label: moment.name }, ...found];
}

/** The executions that the same node runs, in the order in which they began: of a loop, one for each element. */
export function siblingsOf(moment: Pick<Moment, "scope" | "executions">): Moment["executions"] {
  const shown = moment.executions.find((one) => one.scope === moment.scope);
  if (shown === undefined) return [];
  const found = moment.executions.filter((one) => one.parent === shown.parent && one.node === shown.node);
  return found.length > 1 ? found.sort((one, other) => one.started_at - other.started_at) : [];
}

const NAMES: Record<string, string> = {
  events: "Events",
  steps: "Steps",
  tasks: "Tasks",
  components: "Components",
  iterations: "Iterations",
};

/** Counts that are not nothing, events first. */
export function countsOf(counts: Readonly<Record<string, number>>): [name: string, count: number][] {
  const order = Object.keys(NAMES);
  return Object.entries(counts)
    .filter(([, count]) => count > 0)
    .sort(([one], [other]) => ((order.indexOf(one) + 99) % 99) - ((order.indexOf(other) + 99) % 99))
    .map(([name, count]) => [
      NAMES[name] ?? name.replaceAll("_", " ").replace(/^./, (letter) => letter.toUpperCase()),
      count,
    ]);
}

export interface Offered {
  cancel: boolean;
  resume: boolean;
  /** Only the iterations that failed run again: all that a job which completed can be resumed for. */
  failedOnly: "no" | "choice" | "only";
}

/** What can be done with a run in a state. What cannot be done is not offered. */
export function offered(status: string, failedIterations: number): Offered {
  const isOver = status === "completed" || status === "failed" || status === "cancelled";
  const canResume =
    status === "failed" ||
    status === "interrupted" ||
    status === "crashed" ||
    (status === "completed" && failedIterations > 0);
  return {
    cancel: !isOver,
    resume: canResume,
    failedOnly: !canResume || failedIterations === 0 ? "no" : status === "completed" ? "only" : "choice",
  };
}
