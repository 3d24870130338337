/** What tabs and the one that holds the connection say to each other. */
import type { Live } from "@/api/connection";
import type { RunOut } from "@/api/schema";

/** How far a run is. */
export interface Tick {
  execution_id: string;
  /** The number of its last event. */
  seq: number;
  /** As in the list of runs, or `crashed`, or `deleted`. */
  status: string;
  /** How many lines its tools have printed. */
  lines: number;
}

export type Run = RunOut;

export interface State {
  live: Live;
  /** When the next try is, as milliseconds since the epoch. */
  nextTry: number | null;
}

/** From a tab. `ticks` are what it has seen last: a new holder of the connection goes on from there. */
export type FromTab =
  | { type: "want"; runs: boolean; executions: readonly string[]; ticks: readonly Tick[] }
  | { type: "ping" }
  | { type: "again" }
  | { type: "bye" };

/** To a tab. `who` comes from a new holder of the connection, which does not know yet what is wanted. */
export type ToTab =
  | { type: "news"; ticks: readonly Tick[]; runs: readonly Run[] }
  | { type: "state"; state: State }
  | { type: "who" };
