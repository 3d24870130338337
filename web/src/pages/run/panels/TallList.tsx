/** A list of rows of one height, as long as it likes: only what is in sight is in the page. It has the focus, and its keys move. */
import {
  type KeyboardEvent,
  type ReactNode,
  type Ref,
  useEffect,
  useId,
  useImperativeHandle,
  useLayoutEffect,
  useRef,
  useState,
} from "react";
import { names } from "@/ui";
import { type Geometry, inSight, isAtEnd, isScaled, reveal, scrollOf, sizerHeight, topOf } from "./tall";

export interface TallHandle {
  reveal(index: number, align?: "nearest" | "centre" | "start"): void;
  end(): void;
  focus(): void;
}

const HELD_MS = 300;

interface TallListProps {
  label: string;
  count: number;
  /** The height of a row, in pixels. */
  row: number;
  /** The row that the keys are at; -1 for none. */
  active: number;
  onActive: (index: number) => void;
  onEnter?: (index: number) => void;
  render: (index: number) => ReactNode;
  rowClass?: (index: number) => string | undefined;
  /** What is in sight, as a half-open range. */
  onSight?: (first: number, end: number) => void;
  /** Stays at the end when it is at the end and the list grows. */
  isSticking?: boolean;
  onEnd?: (isAtEnd: boolean) => void;
  handle?: Ref<TallHandle>;
  className?: string;
}

export function TallList({
  label,
  count,
  row,
  active,
  onActive,
  onEnter,
  render,
  rowClass,
  onSight,
  isSticking = false,
  onEnd,
  handle,
  className,
}: TallListProps) {
  const id = useId();
  const frame = useRef<HTMLDivElement>(null);
  const [view, setView] = useState(0);
  const [place, setPlace] = useState({ top: 0, scroll: 0 });
  const list: Geometry = { count, row, view };
  const now = useRef({ list, top: 0, wasAtEnd: true });
  /** What was to be revealed before it was known how much can be seen. */
  const pending = useRef<{ index: number; align: "nearest" | "centre" | "start" | undefined } | null>(null);

  useLayoutEffect(() => {
    const box = frame.current;
    if (box === null) return;
    const measure = () => setView(box.clientHeight);
    measure();
    const watch = new ResizeObserver(measure);
    watch.observe(box);
    return () => watch.disconnect();
  }, []);

  /** Until when nobody but us moves the list; see `onScroll`. */
  const heldUntil = useRef(0);

  function goTo(top: number, geometry = now.current.list) {
    const box = frame.current;
    if (box === null) return;
    const scroll = scrollOf(top, geometry);
    box.scrollTop = scroll;
    now.current.top = top;
    now.current.wasAtEnd = isAtEnd(top, geometry);
    setPlace({ top, scroll: box.scrollTop });
  }

  // biome-ignore lint/correctness/useExhaustiveDependencies: `goTo` reads refs only, and `active` matters when the size changes.
  useLayoutEffect(() => {
    const { wasAtEnd, top, list: before } = now.current;
    const geometry = { count, row, view };
    // Less can be seen, such as when the selected event opens below: the row that the keys are at stays in sight.
    const isHidden =
      view < before.view && active >= 0 && reveal(active, top, before) === top && reveal(active, top, geometry) !== top;
    now.current.list = geometry;
    if (view === 0) return;
    if (pending.current !== null) {
      const { index, align } = pending.current;
      pending.current = null;
      goTo(reveal(index, top, geometry, align), geometry);
    } else if (isHidden) goTo(reveal(active, top, geometry), geometry);
    else if (isSticking && wasAtEnd) goTo(Math.max(0, count * row - view), geometry);
    else if (isScaled(geometry) || top > count * row - view)
      goTo(Math.max(0, Math.min(top, count * row - view)), geometry);
  }, [count, row, view, isSticking]);

  function onScroll() {
    const box = frame.current;
    if (box === null) return;
    // What we set ourselves comes back as an event; the place it stands for is more exact than the scroll bar can be.
    if (Math.abs(box.scrollTop - scrollOf(now.current.top, now.current.list)) <= 1) return;
    // Selecting a row changes the address, and the router then puts every scroll position back to where it was before.
    if (performance.now() < heldUntil.current) {
      goTo(now.current.top);
      return;
    }
    const top = topOf(box.scrollTop, now.current.list);
    now.current.top = top;
    now.current.wasAtEnd = isAtEnd(top, now.current.list);
    setPlace({ top, scroll: box.scrollTop });
  }

  // On a scaled list a turn of the wheel would skip rows: it moves by the pixels of the list instead.
  const scaled = isScaled(list);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `goTo` reads refs only.
  useEffect(() => {
    const box = frame.current;
    if (box === null || !scaled) return;
    const onWheel = (event: WheelEvent) => {
      if (event.ctrlKey || event.shiftKey || event.deltaY === 0) return;
      event.preventDefault();
      const step = event.deltaMode === 1 ? row : event.deltaMode === 2 ? now.current.list.view : 1;
      const { count: all, view: seen } = now.current.list;
      goTo(Math.max(0, Math.min(now.current.top + event.deltaY * step, all * row - seen)));
    };
    box.addEventListener("wheel", onWheel, { passive: false });
    return () => box.removeEventListener("wheel", onWheel);
  }, [scaled, row]);

  useImperativeHandle(handle, () => ({
    reveal: (index, align) => {
      if (now.current.list.view === 0) pending.current = { index, align };
      else {
        heldUntil.current = performance.now() + HELD_MS;
        goTo(reveal(index, now.current.top, now.current.list, align));
      }
    },
    end: () => goTo(Math.max(0, now.current.list.count * row - now.current.list.view)),
    focus: () => frame.current?.focus(),
  }));

  const { first, end } = inSight(place.top, list);
  const ends = isAtEnd(place.top, list);
  const told = useRef({ onSight, onEnd });
  told.current = { onSight, onEnd };
  useEffect(() => {
    if (view > 0) told.current.onSight?.(first, end);
  }, [first, end, view]);
  useEffect(() => told.current.onEnd?.(ends), [ends]);

  function release() {
    heldUntil.current = 0;
  }

  function move(to: number) {
    const index = Math.max(0, Math.min(count - 1, to));
    onActive(index);
    heldUntil.current = performance.now() + HELD_MS;
    goTo(reveal(index, now.current.top, now.current.list));
  }

  function onKeyDown(event: KeyboardEvent) {
    if (event.ctrlKey || event.metaKey || event.altKey || count === 0 || event.target !== frame.current) return;
    const page = Math.max(1, Math.floor(view / row) - 1);
    // Without a row that keys are at, they begin with the first in sight.
    const at = active >= 0 ? active : Math.ceil(place.top / row) - 1;
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: count - 1 }[
      event.key
    ];
    if (to !== undefined) move(to);
    else if (event.key === "Enter" && active >= 0) onEnter?.(active);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  const offset = place.scroll - place.top;
  const rows: ReactNode[] = [];
  for (let index = first; index < end; index += 1) {
    rows.push(
      // biome-ignore lint/a11y/useFocusableInteractive lint/a11y/useKeyWithClickEvents: the list has the focus, and its keys do the same.
      <div
        key={index}
        id={`${id}-${index}`}
        role="option"
        aria-selected={index === active}
        aria-posinset={index + 1}
        aria-setsize={count}
        className={names("tall-row", index === active && "tall-active", rowClass?.(index))}
        style={{ height: row, transform: `translateY(${index * row + offset}px)` }}
        onClick={() => onActive(index)}
        onDoubleClick={() => onEnter?.(index)}
      >
        {render(index)}
      </div>,
    );
  }
  return (
    <div
      ref={frame}
      role="listbox"
      aria-label={label}
      aria-activedescendant={active >= first && active < end ? `${id}-${active}` : undefined}
      tabIndex={0}
      className={names("rp-tall", className)}
      onScroll={onScroll}
      onWheel={release}
      onPointerDown={release}
      onTouchStart={release}
      onKeyDown={onKeyDown}
    >
      <div className="tall-sizer" style={{ height: sizerHeight(list) }} role="presentation">
        {rows}
      </div>
    </div>
  );
}
