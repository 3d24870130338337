/** Layouts that were made: in memory, and the latest in the browser's storage, so that a graph that was seen before is drawn at once. */
import type { Layout } from "./layout";

const KEY = "penstock.layouts";
/** Raised when sizes or engines change: what was made before is forgotten. */
const VERSION = 7;
const MOST_IN_MEMORY = 60;
const MOST_STORED = 24;
const LARGEST = 400_000;
const MOST_CHARACTERS = 1_500_000;

const memory = new Map<string, Layout>();

interface Stored {
  version: number;
  /** The latest last. */
  layouts: [key: string, layout: Layout][];
}

function read(): Stored {
  try {
    const found = JSON.parse(localStorage.getItem(KEY) ?? "null") as Stored | null;
    if (found?.version === VERSION && Array.isArray(found.layouts)) return found;
  } catch {
    // What cannot be read is made again.
  }
  return { version: VERSION, layouts: [] };
}

export function keptLayout(key: string): Layout | undefined {
  const known = memory.get(key);
  if (known !== undefined) return known;
  const stored = read().layouts.find(([one]) => one === key)?.[1];
  if (stored !== undefined) memory.set(key, stored);
  return stored;
}

export function keepLayout(key: string, layout: Layout) {
  memory.delete(key);
  memory.set(key, layout);
  for (const oldest of memory.keys()) {
    if (memory.size <= MOST_IN_MEMORY) break;
    memory.delete(oldest);
  }
  try {
    if (JSON.stringify(layout).length > LARGEST) return;
    const layouts = read().layouts.filter(([one]) => one !== key);
    layouts.push([key, layout]);
    let text = JSON.stringify({ version: VERSION, layouts: layouts.slice(-MOST_STORED) });
    while (text.length > MOST_CHARACTERS && layouts.length > 1) {
      layouts.shift();
      text = JSON.stringify({ version: VERSION, layouts: layouts.slice(-MOST_STORED) });
    }
    localStorage.setItem(KEY, text);
  } catch {
    // Full or forbidden: then it is kept in memory only.
  }
}

export function forgetLayouts() {
  memory.clear();
}
