/**
 * Keys that do things. What is registered is what `?` lists.
 *
 *     useShortcuts("Runs", [{ keys: ["j", "ArrowDown"], label: "Next run", run: next }]);
 *
 * Keys are as in KeyboardEvent.key, with `Mod+` for Control or Command, `Shift+` where the key itself does not say it, and `g r` for
 * one after the other. They do nothing while somebody types, unless `isGlobal`.
 */
import { useEffect, useRef, useSyncExternalStore } from "react";

export interface Shortcut {
  keys: readonly string[];
  label: string;
  run: (event: KeyboardEvent) => void;
  /** Also while a field has the focus; for keys with `Mod`. */
  isGlobal?: boolean;
  isDisabled?: boolean;
}

interface Group {
  name: string;
  shortcuts: () => readonly Shortcut[];
}

const PAUSE_MS = 900;
let groups: readonly Group[] = [];
const listeners = new Set<() => void>();
let before = { key: "", at: 0 };

function set(now: readonly Group[]) {
  groups = now;
  for (const listener of listeners) listener();
}

function isTyping(event: KeyboardEvent): boolean {
  const target = event.target;
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable ||
      target.matches("textarea, select, input:not([type=checkbox], [type=radio], [type=button])"))
  );
}

/** Enter and Space press what has the focus, and nothing else. */
function isPressing(event: KeyboardEvent): boolean {
  if (event.key !== "Enter" && event.key !== " ") return false;
  return (
    event.target instanceof Element && event.target.closest("a[href], button, summary, input, [role=button]") !== null
  );
}

/** `Mod+k`, `Shift+Enter`, `j`, `?`. */
export function keyOf(event: KeyboardEvent): string {
  const mod = event.ctrlKey || event.metaKey ? "Mod+" : "";
  const shift = event.shiftKey && event.key.length > 1 ? "Shift+" : "";
  const alt = event.altKey ? "Alt+" : "";
  return `${mod}${alt}${shift}${event.key}`;
}

function onKeyDown(event: KeyboardEvent) {
  if (
    event.defaultPrevented ||
    event.isComposing ||
    isPressing(event) ||
    document.querySelector("dialog[open]") !== null
  )
    return;
  const key = keyOf(event);
  const pair = event.timeStamp - before.at < PAUSE_MS ? `${before.key} ${key}` : "";
  before = { key, at: event.timeStamp };
  const typing = isTyping(event);
  // The page that was shown last comes first.
  for (const group of [...groups].reverse()) {
    for (const one of group.shortcuts()) {
      if (one.isDisabled || (typing && !one.isGlobal)) continue;
      if (!one.keys.includes(key) && !(pair !== "" && one.keys.includes(pair))) continue;
      event.preventDefault();
      before = { key: "", at: 0 };
      one.run(event);
      return;
    }
  }
}

if (typeof window !== "undefined") window.addEventListener("keydown", onKeyDown);

export function useShortcuts(name: string, shortcuts: readonly Shortcut[]) {
  const now = useRef(shortcuts);
  useEffect(() => {
    now.current = shortcuts;
  });
  useEffect(() => {
    const group: Group = { name, shortcuts: () => now.current };
    set([...groups, group]);
    return () => set(groups.filter((one) => one !== group));
  }, [name]);
}

export interface Listed {
  name: string;
  shortcuts: readonly Shortcut[];
}

/** All that is registered now, by group. */
export function useListedShortcuts(): readonly Listed[] {
  const all = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => groups,
  );
  const found = new Map<string, Shortcut[]>();
  for (const group of all) found.set(group.name, [...(found.get(group.name) ?? []), ...group.shortcuts()]);
  return [...found].map(([name, shortcuts]) => ({ name, shortcuts: shortcuts.filter((one) => !one.isDisabled) }));
}
