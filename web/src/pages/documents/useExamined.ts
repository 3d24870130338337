/** A document as it is being written, examined a moment after the last change. */
import { useEffect, useRef, useState } from "react";
import { type Asked, type Examined, examine, type Graph } from "./queries";

export interface Examination {
  /** What was said about the text as it is, or as it was before the change that is being examined. */
  readonly answer: Examined | null;
  /** The last graph there was. */
  readonly graph: Graph | null;
  /** The graph is of an earlier text: the one that is there now has none. */
  readonly isStale: boolean;
  /** The text has changed since the answer. */
  readonly isPending: boolean;
  readonly error: unknown;
}

const PAUSE_MS = 250;
const NOTHING: Examination = { answer: null, graph: null, isStale: false, isPending: true, error: null };

/** `key` names the text: another one is examined, the same one is not. Null waits. */
export function useExamined(asked: Asked | null, key: string): Examination {
  const [found, setFound] = useState<Examination>(NOTHING);
  const isFirst = useRef(true);
  const document = useRef(asked);
  document.current = asked;
  const isReady = asked !== null;

  // biome-ignore lint/correctness/useExhaustiveDependencies: `key` stands for the document.
  useEffect(() => {
    if (!isReady) return;
    const stop = new AbortController();
    setFound((before) => ({ ...before, isPending: true }));
    // An answer that comes after the next change is not looked at: the request is given up with the text it was about.
    const timer = window.setTimeout(
      () => {
        const about = document.current;
        if (about === null) return;
        examine(about, stop.signal).then(
          (answer) => {
            if (!stop.signal.aborted) setFound((before) => told(before, answer));
          },
          (error: unknown) => {
            if (!stop.signal.aborted) setFound((before) => ({ ...before, isPending: false, error }));
          },
        );
      },
      isFirst.current ? 0 : PAUSE_MS,
    );
    isFirst.current = false;
    return () => {
      window.clearTimeout(timer);
      stop.abort();
    };
  }, [key, isReady]);

  return found;
}

/** An answer without a graph leaves the last one there. */
export function told(before: Examination, answer: Examined): Examination {
  return {
    answer,
    graph: answer.graph ?? before.graph,
    isStale: answer.graph === null && before.graph !== null,
    isPending: false,
    error: null,
  };
}
