import type { ReactNode } from "react";
import { Icon, type IconName } from "./Icon";
import { names } from "./names";
import { type State, stateOf, stateWords } from "./state";

interface BadgeProps {
  tone?: "neutral" | "accent" | State;
  icon?: IconName;
  title?: string;
  children: ReactNode;
}

export function Badge({ tone = "neutral", icon, title, children }: BadgeProps) {
  return (
    <span className={names("ui-badge", `ui-tone-${tone}`)} title={title}>
      {icon !== undefined && <Icon name={icon} size={12} />}
      {children}
    </span>
  );
}

interface StatusProps {
  /** A state, or a word of the API such as `completed`. */
  state: State | (string & {});
  /** A run that the log calls running and that nobody works on. */
  isCrashed?: boolean;
  /** What to say instead of the name of the state. */
  children?: ReactNode;
  title?: string;
}

export function StatusBadge({ state, isCrashed = false, children, title }: StatusProps) {
  const of = isCrashed ? "crashed" : stateOf(state);
  return (
    <span className={names("ui-badge", "ui-status", `ui-tone-${of}`)} data-state={of} title={title}>
      <Icon name={of} size={14} />
      {children ?? stateWords[of]}
    </span>
  );
}

/** The icon alone, in the colour of the state. */
export function StatusIcon({ state, isCrashed = false, size = 16 }: StatusProps & { size?: number }) {
  const of = isCrashed ? "crashed" : stateOf(state);
  return (
    <span className={names("ui-status-icon", `ui-ink-${of}`)} data-state={of}>
      <Icon name={of} size={size} label={stateWords[of]} />
    </span>
  );
}
