import {
  cloneElement,
  type FocusEvent,
  type HTMLAttributes,
  type ReactElement,
  useCallback,
  useEffect,
  useId,
  useLayoutEffect,
  useRef,
  useState,
} from "react";
import { place } from "./place";

const DELAY_MS = 350;

interface TooltipProps {
  text: string;
  keys?: string | undefined;
  /** The text is the name of the control already, and is not read out a second time. */
  isName?: boolean;
  /** One element that can be pointed at or focused. */
  children: ReactElement<HTMLAttributes<HTMLElement>>;
}

/** More about a control, on pointing at it and on focus; Escape hides it. It holds nothing that is not said elsewhere. */
export function Tooltip({ text, keys, isName = false, children }: TooltipProps) {
  const id = useId();
  const [anchor, setAnchor] = useState<HTMLElement | null>(null);
  const waiting = useRef<number | undefined>(undefined);
  const box = useRef<HTMLDivElement>(null);

  const show = useCallback((target: HTMLElement, delay: number) => {
    window.clearTimeout(waiting.current);
    waiting.current = window.setTimeout(() => setAnchor(target), delay);
  }, []);
  const hide = useCallback(() => {
    window.clearTimeout(waiting.current);
    setAnchor(null);
  }, []);
  useEffect(() => () => window.clearTimeout(waiting.current), []);

  useEffect(() => {
    if (anchor === null) return;
    const onKey = (event: KeyboardEvent) => event.key === "Escape" && hide();
    window.addEventListener("keydown", onKey, true);
    window.addEventListener("scroll", hide, true);
    return () => {
      window.removeEventListener("keydown", onKey, true);
      window.removeEventListener("scroll", hide, true);
    };
  }, [anchor, hide]);

  useLayoutEffect(() => {
    if (anchor === null || box.current === null) return;
    box.current.showPopover?.();
    place(box.current, anchor, "below-centre");
  }, [anchor]);

  const own = children.props;
  return (
    <>
      {cloneElement(children, {
        "aria-describedby": anchor !== null && !isName ? id : own["aria-describedby"],
        onPointerEnter: (event) => {
          own.onPointerEnter?.(event);
          if (event.pointerType !== "touch") show(event.currentTarget, DELAY_MS);
        },
        onPointerLeave: (event) => {
          own.onPointerLeave?.(event);
          hide();
        },
        onPointerDown: (event) => {
          own.onPointerDown?.(event);
          hide();
        },
        onFocus: (event: FocusEvent<HTMLElement>) => {
          own.onFocus?.(event);
          if (event.currentTarget.matches(":focus-visible")) show(event.currentTarget, 0);
        },
        onBlur: (event: FocusEvent<HTMLElement>) => {
          own.onBlur?.(event);
          hide();
        },
      })}
      {anchor !== null && (
        <div ref={box} id={id} role="tooltip" popover="manual" className="ui-tooltip">
          {text}
          {keys !== undefined && <kbd>{keys}</kbd>}
        </div>
      )}
    </>
  );
}
