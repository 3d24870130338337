import { type ReactNode, useEffect, useState } from "react";
import { createPortal } from "react-dom";

/** What a page offers in the top bar, beside the state of the connection. */
export function Actions({ children }: { children: ReactNode }) {
  const [place, setPlace] = useState<HTMLElement | null>(null);
  useEffect(() => setPlace(document.getElementById("shell-actions")), []);
  return place === null ? null : createPortal(children, place);
}
