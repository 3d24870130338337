import { type KeyboardEvent, type ReactNode, useEffect, useId, useLayoutEffect, useRef, useState } from "react";
import { Button, IconButton } from "./Button";
import { Icon, type IconName } from "./Icon";
import { names } from "./names";
import { place } from "./place";

export interface MenuItem {
  label: string;
  onSelect: () => void;
  icon?: IconName;
  /** Behind the word: a key, or a number. */
  hint?: string;
  isDangerous?: boolean;
  isDisabled?: boolean;
  /** Of a choice: a tick in front of it. */
  isChecked?: boolean;
}

interface MenuProps {
  /** The accessible name of the button. */
  label: string;
  items: readonly (MenuItem | "line")[];
  icon?: IconName;
  /** Given, the button shows it; else it is an icon. */
  children?: ReactNode;
  align?: "start" | "end";
  isDisabled?: boolean;
  size?: "small" | "normal";
}

/** A button with a menu: arrows and first letters move, Enter selects, Escape closes and gives the focus back. */
export function Menu({ label, items, icon, children, align = "start", isDisabled, size = "normal" }: MenuProps) {
  const [isOpen, setOpen] = useState(false);
  const id = useId();
  const button = useRef<HTMLButtonElement>(null);
  const list = useRef<HTMLDivElement>(null);

  useLayoutEffect(() => {
    if (!isOpen || list.current === null || button.current === null) return;
    list.current.showPopover?.();
    place(list.current, button.current, align === "end" ? "below-end" : "below-start");
    focusable(list.current)[0]?.focus();
  }, [isOpen, align]);

  useEffect(() => {
    if (!isOpen) return;
    const onOutside = (event: Event) => {
      const target = event.target as Node;
      if (!list.current?.contains(target) && !button.current?.contains(target)) setOpen(false);
    };
    const onScroll = (event: Event) => !list.current?.contains(event.target as Node) && setOpen(false);
    document.addEventListener("pointerdown", onOutside);
    document.addEventListener("focusin", onOutside);
    document.addEventListener("scroll", onScroll, true);
    return () => {
      document.removeEventListener("pointerdown", onOutside);
      document.removeEventListener("focusin", onOutside);
      document.removeEventListener("scroll", onScroll, true);
    };
  }, [isOpen]);

  function close() {
    setOpen(false);
    button.current?.focus();
  }

  function onKeyDown(event: KeyboardEvent) {
    event.stopPropagation();
    const all = focusable(list.current);
    const at = all.indexOf(document.activeElement as HTMLElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      all[(to + all.length) % all.length]?.focus();
    } else if (event.key === "Escape" || event.key === "Tab") {
      event.preventDefault();
      close();
    } else if (event.key.length === 1 && event.key !== " ") {
      const letter = event.key.toLowerCase();
      const after = [...all.slice(at + 1), ...all.slice(0, at + 1)];
      after.find((one) => one.textContent?.trim().toLowerCase().startsWith(letter))?.focus();
    }
  }

  const shared = {
    ref: button,
    "aria-haspopup": "menu" as const,
    "aria-expanded": isOpen,
    "aria-controls": isOpen ? id : undefined,
    disabled: isDisabled,
    size,
    onClick: () => setOpen(!isOpen),
  };
  return (
    <>
      {children === undefined ? (
        <IconButton icon={icon ?? "more"} label={label} {...shared} />
      ) : (
        <Button icon={icon} aria-label={label} {...shared}>
          {children}
          <Icon name="chevron-down" size={12} />
        </Button>
      )}
      {isOpen && (
        <div
          ref={list}
          id={id}
          role="menu"
          aria-label={label}
          popover="manual"
          className="ui-menu"
          tabIndex={-1}
          onKeyDown={onKeyDown}
        >
          {items.map((item, at) =>
            item === "line" ? (
              // biome-ignore lint/suspicious/noArrayIndexKey: lines have no name, and items do not move while a menu is open.
              <hr key={at} className="ui-menu-line" />
            ) : (
              // biome-ignore lint/a11y/useAriaPropsSupportedByRole: an item that can be checked has the role for it.
              <button
                key={item.label}
                type="button"
                role={item.isChecked === undefined ? "menuitem" : "menuitemcheckbox"}
                aria-checked={item.isChecked}
                tabIndex={-1}
                disabled={item.isDisabled}
                className={names("ui-menu-item", item.isDangerous && "ui-menu-danger")}
                onClick={() => {
                  close();
                  item.onSelect();
                }}
              >
                <span className="ui-menu-icon">
                  {item.isChecked ? <Icon name="check" /> : item.icon !== undefined && <Icon name={item.icon} />}
                </span>
                <span className="ui-menu-label">{item.label}</span>
                {item.hint !== undefined && <span className="ui-menu-hint">{item.hint}</span>}
              </button>
            ),
          )}
        </div>
      )}
    </>
  );
}

function focusable(list: HTMLElement | null): HTMLElement[] {
  return [...(list?.querySelectorAll<HTMLElement>(".ui-menu-item:not(:disabled)") ?? [])];
}
