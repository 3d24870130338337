import { text } from "@/search";

export interface FleetSearch {
  view?: string;
}

export function fleetSearch(raw: Record<string, unknown>): FleetSearch {
  return { view: text(raw.view) };
}
