/** What cards and links can do. It changes seldom: states are watched one by one. */
import { createContext } from "react";

export interface GraphActions {
  /** What is shown is live: cards that run look at the clock. */
  isLive: boolean;
  select: (drawn: string) => void;
  selectWire: (wire: string) => void;
  open: (drawn: string) => void;
  close: (drawn: string) => void;
  stepInto: (scope: string) => void;
}

export const GraphContext = createContext<GraphActions>({
  isLive: false,
  select: () => undefined,
  selectWire: () => undefined,
  open: () => undefined,
  close: () => undefined,
  stepInto: () => undefined,
});
