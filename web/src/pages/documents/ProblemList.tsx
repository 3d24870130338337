import { Link } from "@tanstack/react-router";
import { ErrorState, Icon, names, Prose, plural, sentence } from "@/ui";
import type { SortedProblems } from "./follow";
import type { DocumentProblem, FileEntry } from "./queries";
import type { Examination } from "./useExamined";

interface Props {
  found: SortedProblems;
  examination: Examination;
  onGo: (line: number, column: number | null) => void;
  /** The files that can be opened. */
  files: readonly FileEntry[];
}

/** The problems of a document, each with its place: a click goes there. */
export function ProblemList({ found, examination, onGo, files }: Props) {
  const { here, elsewhere } = found;
  if (examination.error !== null && examination.answer === null) {
    return <ErrorState error={examination.error} title="The document cannot be checked" />;
  }
  if (here.length + elsewhere.length === 0) {
    return (
      <p className="problems-none">
        {examination.answer === null ? (
          <span className="quiet">Checking …</span>
        ) : (
          <>
            <Icon name="check" /> No problems
          </>
        )}
      </p>
    );
  }
  return (
    <ul className="problems">
      {here.map((problem, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: two problems may be alike in all they say.
        <li key={at}>
          <button type="button" className="problem" onClick={() => onGo(problem.line ?? 1, problem.column ?? null)}>
            <Said problem={problem} place={problem.line ? `line ${problem.line}` : ""} />
          </button>
        </li>
      ))}
      {elsewhere.map((problem, at) => {
        const file = files.find((one) => one.file === problem.file || one.path === problem.file);
        const place = `${file?.path ?? problem.file}${problem.line ? `:${problem.line}` : ""}`;
        return (
          // biome-ignore lint/suspicious/noArrayIndexKey: as above.
          <li key={`elsewhere ${at}`}>
            {file === undefined ? (
              <div className="problem">
                <Said problem={problem} place={place} />
              </div>
            ) : (
              <Link
                to="/documents/file/$"
                params={{ _splat: file.path }}
                search={{ line: problem.line ?? undefined }}
                className="problem"
              >
                <Said problem={problem} place={place} />
              </Link>
            )}
          </li>
        );
      })}
    </ul>
  );
}

function Said({ problem, place }: { problem: DocumentProblem; place: string }) {
  const severity = problem.severity ?? "error";
  const label = typeof problem.label === "string" && problem.label !== "" ? problem.label : null;
  return (
    <>
      <span className={names("problem-icon", `problem-${severity}`)}>
        <Icon name={severity === "error" ? "error" : severity === "warning" ? "warning" : "info"} label={severity} />
      </span>
      <span className="problem-text">
        <span>
          <Prose text={sentence(worded(problem.message))} />
          {label !== null && (
            <>
              {": "}
              <Prose text={label} />
            </>
          )}
        </span>
        {problem.hint && (
          <span className="quiet">
            <Prose text={sentence(problem.hint)} />
          </span>
        )}
        {problem.calls && <span className="quiet mono">{problem.calls}</span>}
      </span>
      <span className="problem-code mono">{problem.code}</span>
      <span className="problem-place mono quiet">{place}</span>
    </>
  );
}

/** `UNKNOWN_TYPE: there is no …` without the name, which the code stands for. */
function worded(message: string): string {
  return message.replace(/^[A-Z][A-Z0-9_]+: /, "");
}

export function summary(found: SortedProblems, examination: Examination): string {
  if (examination.answer === null) return examination.error === null ? "Checking …" : "Cannot be checked";
  const words = [
    found.errors > 0 && plural(found.errors, "error"),
    found.warnings > 0 && plural(found.warnings, "warning"),
  ];
  const rest = found.here.length + found.elsewhere.length - found.errors - found.warnings;
  return [...words, rest > 0 && plural(rest, "note")].filter(Boolean).join(", ") || "Valid";
}
