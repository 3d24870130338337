/** Plain tables: dense rows, a head that stays, numbers to the right. Long lists take virtual rows (see pages/runs). */
import type { HTMLAttributes, ReactNode, TdHTMLAttributes, ThHTMLAttributes } from "react";
import { Icon } from "./Icon";
import { names } from "./names";

interface TableProps extends HTMLAttributes<HTMLTableElement> {
  /** Says what the table is; seen by screen readers only, unless `isCaptionShown`. */
  caption: string;
  isCaptionShown?: boolean;
  children: ReactNode;
}

export function Table({ caption, isCaptionShown = false, className, children, ...rest }: TableProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard.
    <section className="ui-table-frame" aria-label={caption} tabIndex={0}>
      <table className={names("ui-table", className)} {...rest}>
        <caption className={isCaptionShown ? "ui-table-caption" : "visually-hidden"}>{caption}</caption>
        {children}
      </table>
    </section>
  );
}

export type Sorted = "ascending" | "descending" | "none";

interface ThProps extends ThHTMLAttributes<HTMLTableCellElement> {
  isNumeric?: boolean;
  /** Given, the head is a button that sorts. */
  sorted?: Sorted;
  onSort?: () => void;
}

export function Th({ isNumeric = false, sorted, onSort, className, children, ...rest }: ThProps) {
  return (
    <th
      scope="col"
      aria-sort={sorted === "none" ? undefined : sorted}
      className={names(isNumeric && "ui-numeric", className)}
      {...rest}
    >
      {onSort === undefined ? (
        children
      ) : (
        <button type="button" className="ui-sort" onClick={onSort}>
          {children}
          {sorted !== undefined && sorted !== "none" && (
            <Icon name={sorted === "ascending" ? "chevron-up" : "chevron-down"} size={12} />
          )}
        </button>
      )}
    </th>
  );
}

interface TdProps extends TdHTMLAttributes<HTMLTableCellElement> {
  isNumeric?: boolean;
}

export function Td({ isNumeric = false, className, ...rest }: TdProps) {
  return <td className={names(isNumeric && "ui-numeric", className)} {...rest} />;
}

/** Names and values, as in the details of a thing. */
export function Facts({ facts }: { facts: readonly (readonly [name: ReactNode, value: ReactNode] | false | null)[] }) {
  return (
    <dl className="ui-facts">
      {facts.map((fact, at) =>
        fact ? (
          // biome-ignore lint/suspicious/noArrayIndexKey: the facts of a thing keep their places.
          <div key={at}>
            <dt>{fact[0]}</dt>
            <dd>{fact[1]}</dd>
          </div>
        ) : null,
      )}
    </dl>
  );
}
