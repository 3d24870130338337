import { Fragment, type ReactNode } from "react";
import { names } from "@/ui";
import { plain, type Run, runsOf } from "./ansi";
import { occurrences } from "./lines";

/** A line in its colours, with what is searched for marked. It is text, whatever it looks like. */
export function LineText({ line, search }: { line: string; search: string }) {
  const runs = runsOf(line);
  const found = search === "" ? [] : occurrences(plain(line), search);
  let at = 0;
  return (
    <>
      {runs.map((run, index) => {
        const from = at;
        at += run.text.length;
        return (
          // biome-ignore lint/suspicious/noArrayIndexKey: the runs of a line keep their places.
          <span key={index} className={classOf(run)}>
            {found.length === 0 ? run.text : marked(run.text, from, found)}
          </span>
        );
      })}
    </>
  );
}

function classOf(run: Run): string | undefined {
  return (
    names(
      run.ink !== null && `log-${run.ink}`,
      run.isBold && "log-bold",
      run.isFaint && "log-faint",
      run.isUnderlined && "log-underlined",
    ) || undefined
  );
}

function marked(text: string, from: number, found: readonly [number, number][]): ReactNode {
  const parts: ReactNode[] = [];
  let at = 0;
  for (const [start, end] of found) {
    const first = Math.max(at, start - from);
    const last = Math.min(text.length, end - from);
    if (last <= first) continue;
    parts.push(
      <Fragment key={`${first}-before`}>{text.slice(at, first)}</Fragment>,
      <mark key={first}>{text.slice(first, last)}</mark>,
    );
    at = last;
  }
  parts.push(<Fragment key="rest">{text.slice(at)}</Fragment>);
  return parts;
}
