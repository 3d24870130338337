/** What became of slots, in words and states. */
import type { Schedule, Slot } from "./queries";

/** The state whose colour and icon a slot has. */
export function stateOfSlot(slot: Slot): string {
  if (slot.run !== null) return slot.status;
  return (
    {
      due: "waiting",
      queued: "waiting",
      started: "running",
      skipped: "skipped",
      refused: "failed",
      missed: "interrupted",
    }[slot.state] ?? "waiting"
  );
}

const WORDS: Record<string, string> = {
  due: "Due",
  queued: "Queued",
  skipped: "Skipped",
  refused: "Refused",
  missed: "Missed",
};

/** The word for a slot that has no run; null leaves it to the state of its run. */
export function wordOfSlot(slot: Slot): string | null {
  return slot.run !== null ? null : (WORDS[slot.state] ?? slot.state);
}

export interface Health {
  readonly missed: number;
  readonly failed: number;
  readonly late: number;
}

export function healthOf(slots: readonly Slot[]): Health {
  return {
    missed: slots.filter((slot) => slot.state === "missed").length,
    failed: slots.filter((slot) => slot.state === "refused" || slot.status === "failed").length,
    late: slots.filter((slot) => slot.is_late).length,
  };
}

/** What is the matter with a schedule, the worst first; null when all is well. */
export function troubleOf(schedule: Schedule): { tone: "failed" | "interrupted" | "waiting"; text: string } | null {
  if (schedule.last_error) return { tone: "failed", text: schedule.last_error };
  if (schedule.late.length > 0)
    return { tone: "interrupted", text: schedule.late.length === 1 ? "late" : `${schedule.late.length} late` };
  return schedule.waiting > 0 ? { tone: "waiting", text: `${schedule.waiting} waiting` } : null;
}

/** What a name may look like; null when it is fine. */
export function nameProblem(name: string, taken: readonly string[]): string | null {
  if (name === "") return "a name is needed";
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/.test(name))
    return "up to 100 letters, digits, `.`, `_` and `-` are allowed, beginning with a letter or digit";
  return taken.includes(name) ? `there is already a \`${name}\`` : null;
}

/** What becomes of slots that passed while no server was there. */
export const MISSED: Record<string, string> = {
  all: "all are run later",
  last: "only the last one is run later",
  none: "they are skipped",
};

/** What becomes of a slot while an earlier run goes on. */
export const OVERLAP: Record<string, string> = {
  allow: "both run",
  skip: "the new slot is skipped",
  queue: "the new slot waits",
  cancel: "the earlier run is cancelled",
};
