/** Light, dark, or as the system has it. Tokens are written with `light-dark()`, so an attribute of the root is all there is to set. */
import { useSyncExternalStore } from "react";

export type Theme = "system" | "light" | "dark";
const KEY = "penstock.theme";
const listeners = new Set<() => void>();

function stored(): Theme {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === "light" || kept === "dark" ? kept : "system";
  } catch {
    return "system"; // A browser may forbid storage.
  }
}

let now: Theme = stored();

export function applyTheme() {
  if (now === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = now;
}

export function setTheme(theme: Theme) {
  now = theme;
  try {
    if (theme === "system") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, theme);
  } catch {
    // Then it holds until the page is loaded again.
  }
  applyTheme();
  for (const listener of listeners) listener();
}

// The other tabs follow.
if (typeof window !== "undefined") {
  window.addEventListener("storage", (event) => {
    if (event.key !== KEY) return;
    now = stored();
    applyTheme();
    for (const listener of listeners) listener();
  });
}

export function useTheme(): [Theme, (theme: Theme) => void] {
  const theme = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => now,
  );
  return [theme, setTheme];
}
