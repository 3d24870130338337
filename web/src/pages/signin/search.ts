import { text } from "@/search";

export interface SignInSearch {
  /** Where to go afterwards: an address of this page. */
  to?: string;
}

export function signInSearch(raw: Record<string, unknown>): SignInSearch {
  const to = text(raw.to);
  // Only within this site: `//elsewhere` and `/\elsewhere` would lead away from it.
  return { to: to !== undefined && /^\/(?![/\\])/.test(to) ? to : undefined };
}
