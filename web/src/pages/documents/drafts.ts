/** Changes that were not saved, kept for as long as the tab lives: a reload or a crash of the page loses nothing. */

export interface Draft {
  readonly text: string;
  /** Of the file that the text was made from; null when the file was new. */
  readonly digest: string | null;
}

const PREFIX = "penstock.draft.";

export function readDraft(name: string, store: Storage | null = storage()): Draft | null {
  try {
    const kept = JSON.parse(store?.getItem(PREFIX + name) ?? "null") as Partial<Draft> | null;
    if (kept === null || typeof kept.text !== "string") return null;
    return { text: kept.text, digest: typeof kept.digest === "string" ? kept.digest : null };
  } catch {
    return null;
  }
}

export function keepDraft(name: string, draft: Draft, store: Storage | null = storage()): void {
  try {
    store?.setItem(PREFIX + name, JSON.stringify(draft));
  } catch {
    // The store is full or forbidden: then only leaving the page is guarded.
  }
}

export function dropDraft(name: string, store: Storage | null = storage()): void {
  try {
    store?.removeItem(PREFIX + name);
  } catch {
    // As above.
  }
}

/** The names of all drafts. */
export function drafts(store: Storage | null = storage()): Set<string> {
  const found = new Set<string>();
  for (let at = 0; store !== null && at < store.length; at += 1) {
    const key = store.key(at);
    if (key?.startsWith(PREFIX)) found.add(key.slice(PREFIX.length));
  }
  return found;
}

function storage(): Storage | null {
  try {
    return window.sessionStorage;
  } catch {
    return null;
  }
}
