import { text } from "@/search";

export interface SchedulesSearch {
  view?: string;
  name?: string;
}

export function schedulesSearch(raw: Record<string, unknown>): SchedulesSearch {
  return { view: text(raw.view), name: text(raw.name) };
}
