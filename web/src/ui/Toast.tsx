import { useSyncExternalStore } from "react";
import { ApiError } from "@/api/errors";
import { IconButton } from "./Button";
import { Icon } from "./Icon";
import { names } from "./names";

type Kind = "done" | "failed" | "note";

interface Toast {
  id: number;
  kind: Kind;
  text: string;
  hint: string | null;
}

const SHOWN_MS = { done: 5_000, note: 8_000, failed: 20_000 };
const MOST = 4;
let toasts: readonly Toast[] = [];
let last = 0;
const listeners = new Set<() => void>();

function set(now: readonly Toast[]) {
  toasts = now;
  for (const listener of listeners) listener();
}

/** Says what came of something, from anywhere. */
export function toast(kind: Kind, text: string, hint: string | null = null) {
  const id = ++last;
  set([...toasts, { id, kind, text, hint }].slice(-MOST));
  window.setTimeout(() => dismiss(id), SHOWN_MS[kind]);
}

/** Says that something failed, in the words of the server. */
export function toastError(error: unknown) {
  if (error instanceof ApiError) toast("failed", error.message, error.hint);
  else toast("failed", error instanceof Error ? error.message : String(error));
}

function dismiss(id: number) {
  if (toasts.some((one) => one.id === id)) set(toasts.filter((one) => one.id !== id));
}

const icons = { done: "ok", failed: "failed", note: "info" } as const;

export function Toasts() {
  const shown = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => toasts,
  );
  return (
    <section className="ui-toasts" aria-label="Notifications" aria-live="polite" aria-relevant="additions">
      {shown.map((one) => (
        <div key={one.id} className={names("ui-toast", `ui-toast-${one.kind}`)}>
          <Icon name={icons[one.kind]} />
          <div className="ui-toast-text">
            {sentence(one.text)}
            {one.hint !== null && <div className="quiet">{sentence(one.hint)}</div>}
          </div>
          <IconButton icon="close" label="Dismiss" size="small" onClick={() => dismiss(one.id)} />
        </div>
      ))}
    </section>
  );
}

/** Messages of the server begin with a small letter, as its terminal output does. */
export function sentence(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}
