import { counted, lasting, plural } from "@/ui";
import type { Bar, Lane } from "./bars";

const KINDS: Record<Bar["kind"], string> = { run: "run", attempt: "attempt", wait: "wait", lease: "lease" };

function lasted(bar: Bar, now: number): string {
  const ms = Math.max(0, (bar.until ?? now) - bar.since) * 1000;
  return bar.until === null ? `for ${lasting(ms)} so far` : lasting(ms);
}

/** The lines of the tooltip. */
export function barTip(bar: Bar, now: number): string[] {
  const what =
    bar.count > 1
      ? plural(bar.count, KINDS[bar.kind])
      : bar.kind === "attempt" && bar.attempt
        ? `attempt ${bar.attempt}`
        : KINDS[bar.kind];
  const label = bar.label === "" ? "" : ` ${bar.kind === "wait" ? "" : "of "}${bar.label}`;
  const failed = bar.failed > 0 && bar.count > 1 ? `, ${counted(bar.failed)} failed` : "";
  const lines = [`${what}${label}, ${bar.status}${failed}`, lasted(bar, now)];
  if (bar.scope && bar.count === 1) lines.push(bar.scope);
  if (bar.worker) lines.push(`worker ${bar.worker}`);
  if (bar.is_critical) lines.push("on the critical path");
  return lines;
}

export function barName(lane: Lane, bar: Bar, now: number): string {
  return [lane.title, ...barTip(bar, now)].join(", ");
}
