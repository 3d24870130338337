/** What is shown where there is nothing to show: nothing yet, nothing at all, or an error. */
import type { ReactNode } from "react";
import { ApiError, Unreachable } from "@/api/errors";
import { Button } from "./Button";
import { Icon, type IconName } from "./Icon";
import { Prose } from "./Prose";
import { sentence } from "./Toast";

interface EmptyProps {
  icon?: IconName;
  title: string;
  children?: ReactNode;
  actions?: ReactNode;
  /** It is all that the page has, so its title is the heading. */
  isPage?: boolean;
}

export function EmptyState({ icon = "info", title, children, actions, isPage = false }: EmptyProps) {
  const Title = isPage ? "h1" : "p";
  return (
    <div className="ui-empty">
      <Icon name={icon} size={28} />
      <Title className="ui-empty-title">{title}</Title>
      {children !== undefined && <div className="ui-empty-text">{children}</div>}
      {actions !== undefined && <div className="ui-empty-actions">{actions}</div>}
    </div>
  );
}

interface ErrorProps {
  error: unknown;
  /** What could not be done. */
  title?: string;
  onRetry?: () => void;
}

export function ErrorState({ error, title, onRetry }: ErrorProps) {
  const isGone = error instanceof Unreachable;
  const text = error instanceof Error ? error.message : String(error);
  const hint = error instanceof ApiError ? error.hint : isGone ? "the page tries again by itself" : null;
  const problems = error instanceof ApiError ? error.problems : [];
  return (
    <div className="ui-empty ui-error" role="alert">
      <Icon name={isGone ? "interrupted" : "error"} size={28} />
      <p className="ui-empty-title">{title ?? (isGone ? "The server is not answering" : "Something went wrong")}</p>
      <div className="ui-empty-text">
        <p>
          <Prose text={sentence(text)} />
        </p>
        {hint !== null && (
          <p className="quiet">
            <Prose text={sentence(hint)} />
          </p>
        )}
        {problems.length > 0 && (
          <ul className="ui-error-problems">
            {problems.slice(0, 8).map((problem, at) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: the problems of one answer keep their places.
              <li key={at}>
                {problem.file && (
                  <span className="mono quiet">
                    {problem.file}
                    {problem.line ? `:${problem.line}` : ""}{" "}
                  </span>
                )}
                {problem.where && <code>{problem.where} </code>}
                <Prose text={problem.message} />
              </li>
            ))}
          </ul>
        )}
      </div>
      {onRetry !== undefined && (
        <div className="ui-empty-actions">
          <Button icon="refresh" onClick={onRetry}>
            Try again
          </Button>
        </div>
      )}
    </div>
  );
}

/** Rows in grey where content will be. It appears only after a moment, so that what is quick does not flicker. */
export function Loading({ rows = 6, label = "Loading" }: { rows?: number; label?: string }) {
  return (
    <div className="ui-loading" role="status" aria-label={label}>
      {Array.from({ length: rows }, (_, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the rows are all the same.
        <div key={at} className="ui-skeleton" style={{ width: `${92 - ((at * 37) % 41)}%` }} />
      ))}
    </div>
  );
}
