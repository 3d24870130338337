import type { ReactNode } from "react";
import { Icon } from "@/ui";

interface PairProps {
  differs: boolean;
  left: ReactNode;
  right: ReactNode;
  isQuiet?: boolean;
}

/** What both have alike once; what differs, one and the other. */
export function Pair({ differs, left, right, isQuiet = false }: PairProps) {
  if (!differs) return <span>{left ?? right}</span>;
  return (
    <span className={isQuiet ? "cmp-pair quiet" : "cmp-pair"}>
      <span className={isQuiet ? undefined : "cmp-left"}>{left ?? "–"}</span>
      <Icon name="arrow-right" size={12} />
      <span className={isQuiet ? undefined : "cmp-right"}>{right ?? "–"}</span>
    </span>
  );
}
