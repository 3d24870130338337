import { type KeyboardEvent, type ReactNode, useId, useRef } from "react";
import { Icon, type IconName } from "./Icon";
import { names } from "./names";

export interface Tab<Id extends string = string> {
  id: Id;
  label: ReactNode;
  icon?: IconName;
  /** A number behind the word. */
  count?: number;
  isDisabled?: boolean;
}

interface TabsProps<Id extends string> {
  label: string;
  tabs: readonly Tab<Id>[];
  chosen: Id;
  onChoose: (id: Id) => void;
  /** What the chosen tab shows. */
  children?: ReactNode;
  /** Fills the height that is there. */
  isTall?: boolean;
  /** Beside the tabs, at the end. */
  aside?: ReactNode;
}

/** Tabs as ARIA has them: arrows move between them, and one is in the order of the Tab key. */
export function Tabs<Id extends string>({
  label,
  tabs,
  chosen,
  onChoose,
  children,
  isTall = false,
  aside,
}: TabsProps<Id>) {
  const base = useId();
  const list = useRef<HTMLDivElement>(null);
  const usable = tabs.filter((tab) => !tab.isDisabled);

  function onKeyDown(event: KeyboardEvent) {
    const at = usable.findIndex((tab) => tab.id === chosen);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: usable.length - 1 }[event.key];
    const next = to === undefined ? undefined : usable[(to + usable.length) % usable.length];
    if (next === undefined) return;
    event.preventDefault();
    onChoose(next.id);
    list.current?.querySelector<HTMLElement>(`[data-tab="${CSS.escape(next.id)}"]`)?.focus();
  }

  return (
    <div className={names("ui-tabs", isTall && "ui-tabs-tall")}>
      <div className="ui-tabs-bar">
        <div role="tablist" aria-label={label} ref={list} className="ui-tabs-list" onKeyDown={onKeyDown}>
          {tabs.map((tab) => (
            <button
              key={tab.id}
              type="button"
              role="tab"
              id={`${base}-${tab.id}`}
              data-tab={tab.id}
              aria-selected={tab.id === chosen}
              aria-controls={children === undefined ? undefined : `${base}-panel`}
              tabIndex={tab.id === chosen ? 0 : -1}
              disabled={tab.isDisabled}
              className="ui-tab"
              onClick={() => onChoose(tab.id)}
            >
              {tab.icon !== undefined && <Icon name={tab.icon} size={14} />}
              {tab.label}
              {tab.count !== undefined && <span className="ui-tab-count">{tab.count.toLocaleString()}</span>}
            </button>
          ))}
        </div>
        {aside !== undefined && <div className="ui-tabs-aside">{aside}</div>}
      </div>
      {children !== undefined && (
        <div
          role="tabpanel"
          id={`${base}-panel`}
          aria-labelledby={`${base}-${chosen}`}
          // It may scroll, and hold nothing else that can have the focus.
          // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard.
          tabIndex={0}
          className="ui-tab-panel"
        >
          {children}
        </div>
      )}
    </div>
  );
}
