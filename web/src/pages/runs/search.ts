import { oneOf, text } from "@/search";

export const STATUSES = ["running", "completed", "failed", "cancelled", "interrupted", "crashed"] as const;
export type RunStatus = (typeof STATUSES)[number];

export interface RunsSearch {
  status?: RunStatus;
  kind?: "playbook" | "job";
  name?: string;
  label?: string;
  /** As the API has it: `2h`, `3d`, or an ISO 8601 time. */
  since?: string;
  until?: string;
  q?: string;
}

export function runsSearch(raw: Record<string, unknown>): RunsSearch {
  return {
    status: oneOf(raw.status, STATUSES),
    kind: oneOf(raw.kind, ["playbook", "job"] as const),
    name: text(raw.name),
    label: text(raw.label),
    since: text(raw.since),
    until: text(raw.until),
    q: text(raw.q),
  };
}
