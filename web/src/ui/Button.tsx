import type { ButtonHTMLAttributes, ReactNode, Ref } from "react";
import { Icon, type IconName } from "./Icon";
import { names } from "./names";
import { Tooltip } from "./Tooltip";

type Look = "plain" | "primary" | "danger" | "quiet";

export interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  look?: Look;
  icon?: IconName;
  /** Something is under way: it cannot be pressed again. */
  isBusy?: boolean;
  size?: "small" | "normal";
  ref?: Ref<HTMLButtonElement>;
  children?: ReactNode;
}

export function Button({
  look = "plain",
  icon,
  isBusy = false,
  size = "normal",
  className,
  disabled,
  type = "button",
  children,
  ...rest
}: ButtonProps) {
  return (
    <button
      type={type}
      className={names("ui-button", `ui-button-${look}`, size === "small" && "ui-button-small", className)}
      disabled={disabled || isBusy}
      aria-busy={isBusy || undefined}
      {...rest}
    >
      {isBusy ? <Icon name="running" /> : icon !== undefined && <Icon name={icon} />}
      {children}
    </button>
  );
}

export interface IconButtonProps extends Omit<ButtonHTMLAttributes<HTMLButtonElement>, "children"> {
  icon: IconName;
  /** What it does: its accessible name, and its tooltip. */
  label: string;
  /** The key that does the same, shown in the tooltip. */
  keys?: string;
  isPressed?: boolean;
  size?: "small" | "normal";
  ref?: Ref<HTMLButtonElement>;
}

export function IconButton({ icon, label, keys, isPressed, size = "normal", className, ...rest }: IconButtonProps) {
  return (
    <Tooltip text={label} keys={keys} isName>
      <button
        type="button"
        className={names("ui-icon-button", size === "small" && "ui-icon-button-small", className)}
        aria-label={label}
        aria-pressed={isPressed}
        {...rest}
      >
        <Icon name={icon} />
      </button>
    </Tooltip>
  );
}
