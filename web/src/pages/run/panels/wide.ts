import { useEffect, useState } from "react";

/** Whether an element is at least so wide. */
export function useWide(least: number): [(box: HTMLElement | null) => void, boolean] {
  const [isWide, setWide] = useState(true);
  const [box, setBox] = useState<HTMLElement | null>(null);
  useEffect(() => {
    if (box === null) return;
    const watch = new ResizeObserver(() => setWide(box.clientWidth >= least));
    watch.observe(box);
    return () => watch.disconnect();
  }, [box, least]);
  return [setBox, isWide];
}
