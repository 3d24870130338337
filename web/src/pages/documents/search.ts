import { text, whole } from "@/search";

export interface DocumentsSearch {
  q?: string;
  view?: string;
  node?: string;
  /** The line to show. */
  line?: number;
}

export function documentsSearch(raw: Record<string, unknown>): DocumentsSearch {
  return { q: text(raw.q), view: text(raw.view), node: text(raw.node), line: whole(raw.line) };
}

export interface CatalogSearch extends DocumentsSearch {
  /** Without it, the newest. */
  version?: number;
  /** The version that it is compared with. */
  against?: number;
}

export function catalogSearch(raw: Record<string, unknown>): CatalogSearch {
  return { ...documentsSearch(raw), version: whole(raw.version), against: whole(raw.against) };
}
