import { text } from "@/search";

export interface ReferenceSearch {
  q?: string;
}

export function referenceSearch(raw: Record<string, unknown>): ReferenceSearch {
  return { q: text(raw.q) };
}
