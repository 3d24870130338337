/** Plays a run: moves the moment on, by itself, at the chosen pace. */
import { useCallback, useEffect, useRef, useState } from "react";
import { answered, api } from "@/api/client";
import { toastError } from "@/ui";
import { come, type Pace, playedTo, showTimes } from "./play";
import type { Known } from "./scale";

/** So often the moment moves on; the eye needs no more. */
const FRAME_MS = 100;
const PAGE = 500;

interface Playing {
  run: string;
  last: number;
  seq: number;
  isAtEnd: boolean;
  pace: Pace;
  goTo: (seq: number) => void;
}

export function usePlay({ run, last, seq, isAtEnd, pace, goTo }: Playing): {
  isPlaying: boolean;
  toggle: () => void;
  stop: () => void;
} {
  const [isPlaying, setPlaying] = useState(false);
  const now = useRef({ last, seq, isAtEnd, goTo });
  useEffect(() => {
    now.current = { last, seq, isAtEnd, goTo };
  });

  useEffect(() => {
    if (!isPlaying) return;
    const abort = new AbortController();
    const from = now.current.isAtEnd ? 1 : now.current.seq;
    const show = (to: number) => {
      now.current.goTo(to);
      if (to >= now.current.last) setPlaying(false);
    };
    if (now.current.isAtEnd) show(from);
    if (pace.kind === "recorded") {
      void recorded(run, from, pace.value, show, abort.signal).catch((error: unknown) => {
        if (abort.signal.aborted) return;
        setPlaying(false);
        toastError(error);
      });
      return () => abort.abort();
    }
    const begin = performance.now();
    const timer = window.setInterval(() => {
      const to = playedTo(pace, from, now.current.last, (performance.now() - begin) / 1000);
      if (to !== now.current.seq) show(to);
    }, FRAME_MS);
    return () => window.clearInterval(timer);
  }, [isPlaying, pace, run]);

  const toggle = useCallback(() => setPlaying((before) => !before), []);
  const stop = useCallback(() => setPlaying(false), []);
  return { isPlaying, toggle, stop };
}

/** At the recorded pace the times of events are needed, a page ahead of what is shown. */
async function recorded(run: string, from: number, factor: number, show: (seq: number) => void, signal: AbortSignal) {
  let after = Math.max(0, from - 1);
  let before: Known | null = null;
  while (!signal.aborted) {
    const page = await answered(
      api.GET("/api/executions/{run}/event-page", { params: { path: { run }, query: { after, limit: PAGE } }, signal }),
    );
    const events = page.events.flatMap((event): Known[] => {
      const ts = Date.parse(String(event.ts)) / 1000;
      return typeof event.seq === "number" && Number.isFinite(ts) ? [{ seq: event.seq, ts }] : [];
    });
    const known: Known[] = before === null ? events : [before, ...events];
    const times = showTimes(known, factor);
    const begin = performance.now();
    for (let shown = -1; shown < known.length - 1 && !signal.aborted; ) {
      const to = come(times, (performance.now() - begin) / 1000) - 1;
      const event = known[to];
      if (to > shown && event !== undefined) show(event.seq);
      shown = Math.max(shown, to);
      await new Promise((resolve) => window.setTimeout(resolve, FRAME_MS));
    }
    before = known.at(-1) ?? null;
    if (page.next === null) return;
    after = page.next;
  }
}
