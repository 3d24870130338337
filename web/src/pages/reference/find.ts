/** Searching the reference: names count most, then families, then what is said. */
import type { ReferenceEntry } from "../documents/queries";

export interface Family {
  readonly name: string;
  readonly entries: readonly ReferenceEntry[];
}

export function found(entries: readonly ReferenceEntry[], query: string): ReferenceEntry[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const scored = entries.flatMap((entry) => {
    let score = 0;
    for (const word of words) {
      const one = scoreOf(entry, word);
      if (one === 0) return [];
      score += one;
    }
    return [{ entry, score }];
  });
  return scored.sort((a, b) => b.score - a.score).map(({ entry }) => entry);
}

function scoreOf(entry: ReferenceEntry, word: string): number {
  const name = entry.name.toLowerCase();
  if (name === word) return 100;
  if (name.startsWith(word)) return 60;
  if (name.split("_").some((part) => part.startsWith(word))) return 50;
  if (name.includes(word)) return 30;
  if (entry.family.toLowerCase().includes(word) || entry.kind === word) return 15;
  return entry.summary.toLowerCase().includes(word) ? 10 : 0;
}

/** By family, each in the order of its best entry. */
export function families(entries: readonly ReferenceEntry[]): Family[] {
  const groups = new Map<string, ReferenceEntry[]>();
  for (const entry of entries) {
    const name = entry.family || (entry.kind === "tool" ? "tools" : "other");
    groups.set(name, [...(groups.get(name) ?? []), entry]);
  }
  return [...groups].map(([name, own]) => ({ name, entries: own }));
}
