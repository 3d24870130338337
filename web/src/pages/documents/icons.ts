import type { IconName } from "@/ui";

const ICONS: Record<string, IconName> = { playbook: "playbook", job: "job", joblet: "data", project: "folder" };

export function kindIcon(kind: string): IconName {
  return ICONS[kind] ?? "file";
}
