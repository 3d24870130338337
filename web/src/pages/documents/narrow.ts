import { useSyncExternalStore } from "react";

const query = "(max-width: 1000px)";

/** Whether the window is too narrow for two panes side by side. */
export function useNarrow(): boolean {
  return useSyncExternalStore(
    (listener) => {
      const media = window.matchMedia(query);
      media.addEventListener("change", listener);
      return () => media.removeEventListener("change", listener);
    },
    () => window.matchMedia(query).matches,
    () => false,
  );
}
