/**
 * Where one is: from the address, unless the page knows better.
 *
 *     useCrumb("orders · 7d3ab97d7c7d");   // the last crumb, and the title of the tab
 */
import { Link, useRouterState } from "@tanstack/react-router";
import { useEffect, useSyncExternalStore } from "react";
import { Icon } from "@/ui";

export interface Crumb {
  label: string;
  /** An address; the last one has none. */
  to?: string;
}

const AREAS: Record<string, string> = {
  runs: "Runs",
  documents: "Documents",
  compare: "Compare",
  reference: "Reference",
  schedules: "Schedules",
  fleet: "Fleet",
};

let named: { path: string; label: string } | null = null;
const listeners = new Set<() => void>();

/** Names the page that is shown; null as long as its name is not known. */
export function useCrumb(label: string | null | undefined) {
  const path = useRouterState({ select: (state) => state.location.pathname });
  useEffect(() => {
    if (!label) return;
    named = { path, label };
    for (const listener of listeners) listener();
  }, [path, label]);
}

export function useCrumbs(): Crumb[] {
  const path = useRouterState({ select: (state) => state.location.pathname });
  const name = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => named,
  );
  return crumbsOf(path, name?.path === path ? name.label : null);
}

export function crumbsOf(path: string, name: string | null): Crumb[] {
  const [area = "", ...rest] = path.split("/").filter(Boolean).map(decodeURIComponent);
  const first = AREAS[area];
  if (first === undefined) return [{ label: "Not found" }];
  if (rest.length === 0) return [{ label: first }];
  const parts = area === "documents" ? [rest.slice(1).join("/")] : rest;
  const last = name ?? parts.join(" / ");
  return [{ label: first, to: `/${area}` }, { label: last }];
}

export function titleOf(crumbs: readonly Crumb[]): string {
  return [...crumbs.map((crumb) => crumb.label).reverse(), "Penstock"].join(" – ");
}

export function Breadcrumbs({ crumbs }: { crumbs: readonly Crumb[] }) {
  return (
    <nav aria-label="Where you are" className="shell-crumbs">
      <ol>
        {crumbs.map((crumb, at) => (
          <li key={crumb.label}>
            {at > 0 && <Icon name="chevron-right" size={12} />}
            {crumb.to === undefined ? (
              <span aria-current="page" className="ellipsis">
                {crumb.label}
              </span>
            ) : (
              <Link to={crumb.to}>{crumb.label}</Link>
            )}
          </li>
        ))}
      </ol>
    </nav>
  );
}
