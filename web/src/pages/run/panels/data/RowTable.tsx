/** Rows of a port: heads with types that stay, numbers to the right, NULL as such. Only rows in sight are in the page. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useMemo, useRef } from "react";
import { counted, names } from "@/ui";
import type { Column, Rows } from "../ask";
import { cellOf, isNumeric, widthsOf } from "./cells";

const ROW = 26;
const NUMBER = 52;
const LONGEST = 500;

interface RowTableProps {
  label: string;
  columns: Rows["columns"];
  rows: readonly (readonly unknown[])[];
  total: number | null;
  chosen: string | null;
  onColumn: (column: Column) => void;
  /** The end of what is there comes into sight. */
  onEnd?: (() => void) | undefined;
}

export function RowTable({ label, columns, rows, total, chosen, onColumn, onEnd }: RowTableProps) {
  const frame = useRef<HTMLElement>(null);
  const widths = useMemo(() => widthsOf(columns, rows), [columns, rows]);
  const wide = NUMBER + widths.reduce((sum, width) => sum + width, 0);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => frame.current,
    estimateSize: () => ROW,
    overscan: 12,
  });
  const items = virtual.getVirtualItems();
  const last = items.at(-1)?.index ?? -1;
  const above = items[0]?.start ?? 0;
  const below = Math.max(0, virtual.getTotalSize() - (items.at(-1)?.end ?? 0));
  useEffect(() => {
    if (last >= rows.length - 20) onEnd?.();
  }, [last, rows.length, onEnd]);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard.
    <section ref={frame} className="rp-rows" aria-label={label} tabIndex={0}>
      <table style={{ width: wide }} aria-rowcount={(total ?? rows.length) + 1}>
        <caption className="visually-hidden">{label}</caption>
        <colgroup>
          <col style={{ width: NUMBER }} />
          {widths.map((width, at) => (
            <col key={columns[at]?.name} style={{ width }} />
          ))}
        </colgroup>
        <thead>
          <tr>
            <th scope="col" className="rows-number">
              #
            </th>
            {columns.map((column) => (
              <th key={column.name} scope="col" className={names("rows-head", isNumeric(column) && "rows-numeric")}>
                <button
                  type="button"
                  aria-pressed={chosen === column.name}
                  onClick={() => onColumn(column)}
                  title={`Where ${column.name} comes from and goes to`}
                >
                  <span className="rows-name">{column.name}</span>
                  <span className="rows-type">{column.type}</span>
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {above > 0 && <tr style={{ height: above }} />}
          {items.map((item) => (
            <tr key={item.key} aria-rowindex={item.index + 2} className="rows-row">
              <th scope="row" className="rows-number">
                {counted(item.index + 1)}
              </th>
              {columns.map((column, at) => {
                const cell = cellOf(rows[item.index]?.[at]);
                return (
                  <td
                    key={column.name}
                    className={names(
                      `rows-is-${cell.kind}`,
                      (isNumeric(column) || cell.kind === "number") && "rows-numeric",
                      chosen === column.name && "rows-chosen",
                    )}
                    title={cell.text.length > 30 ? cell.text.slice(0, 2000) : undefined}
                  >
                    {cell.text.slice(0, LONGEST)}
                  </td>
                );
              })}
            </tr>
          ))}
          {below > 0 && <tr style={{ height: below }} />}
        </tbody>
      </table>
    </section>
  );
}
