/** Whether a document can be run, and if not, why. */
import { plural } from "@/ui";
import type { Examination } from "./useExamined";

export function whyNot(examination: Examination): string | null {
  const { answer, isPending, error } = examination;
  if (answer === null) return error === null ? "checking …" : "it cannot be checked right now";
  const kind = answer.form?.kind ?? answer.graph?.kind;
  const errors = answer.problems.filter((problem) => (problem.severity ?? "error") === "error").length;
  if (kind === "joblet") return "a joblet runs only as a part of a job";
  if (answer.status === "invalid")
    return errors === 0 ? "it is not valid" : `${plural(errors, "error")} to repair first`;
  if (isPending) return "checking …";
  return answer.form === null ? "it is no playbook and no job" : null;
}
