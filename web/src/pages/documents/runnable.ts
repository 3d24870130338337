/** Whether a document can be run, and if not, why. */
import { plural } from "@/ui";
import type { Examination } from "./useExamined";

export function whyNot(examination: Examination): string | null {
  const { answer, isPending, error } = examination;
  if (answer === null) return error === null ? "checking …" : "it cannot be checked right now";
  const kind = answer.form?.kind ?? answer.graph?.kind;
  const errors = answer.problems.filter((problem) => (problem.severity ?? "error") === "error").length;
  if (kind === "joblet") return "a joblet only runs as part of a job";
  if (answer.status === "invalid") return errors === 0 ? "it is not valid" : `${plural(errors, "error")} to fix first`;
  if (isPending) return "checking …";
  return answer.form === null ? "it is neither a playbook nor a job" : null;
}
