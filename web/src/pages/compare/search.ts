import { text } from "@/search";

export interface CompareSearch {
  left?: string;
  right?: string;
  view?: string;
  node?: string;
}

export function compareSearch(raw: Record<string, unknown>): CompareSearch {
  return { left: text(raw.left), right: text(raw.right), view: text(raw.view), node: text(raw.node) };
}
