import { queryOptions } from "@tanstack/react-query";
import { body, json } from "@/api/client";
import type { components } from "@/api/schema";

type Schemas = components["schemas"];
export type Schedule = Schemas["ScheduleOut"];
export type Slot = Schemas["SlotOut"];
export type Hook = Schemas["HookOut"];
export type Alert = Schemas["AlertOut"];
export type Delivery = Schemas["DeliveryOut"];
export type Backfilled = Schemas["BackfillOut"];

const EVERY_MS = 5_000;
const at = (kind: "schedules" | "hooks" | "alerts", name: string) => `/api/${kind}/${encodeURIComponent(name)}`;

export const schedulesQuery = queryOptions({
  queryKey: ["schedules"],
  queryFn: ({ signal }) => json<{ schedules: Schedule[] }>("/api/schedules", { signal }),
  refetchInterval: EVERY_MS,
});

export const slotsQuery = (name: string) =>
  queryOptions({
    queryKey: ["schedules", name, "slots"],
    queryFn: ({ signal }) => json<{ slots: Slot[] }>(`${at("schedules", name)}/slots?limit=100`, { signal }),
    refetchInterval: EVERY_MS,
  });

export function timesOf(cron: string, zone: string, count: number, signal?: AbortSignal): Promise<{ times: string[] }> {
  return json("/api/times", { ...body({ cron, zone, count }), signal });
}

export const timesQuery = (cron: string, zone: string, count = 10) =>
  queryOptions({
    queryKey: ["times", cron, zone, count],
    queryFn: ({ signal }) => timesOf(cron, zone, count, signal),
    staleTime: 30_000,
    retry: false,
  });

/** What a schedule is made of, as the API takes it. */
export interface PutSchedule {
  cron: string;
  zone: string;
  path: string;
  version: number | null;
  payload: Record<string, unknown>;
  context: string | null;
  missed: string;
  overlap: string;
  deadline_s: number | null;
  is_on: boolean;
}

export function wantedOf(schedule: Schedule): PutSchedule {
  const { cron, zone, path, version, payload, context, missed, overlap, deadline_s, is_on } = schedule;
  return { cron, zone, path, version, payload, context, missed, overlap, deadline_s, is_on };
}

export const putSchedule = (name: string, wanted: PutSchedule) =>
  json<Schedule>(at("schedules", name), body(wanted, "PUT"));
export const dropSchedule = (name: string) => json<void>(at("schedules", name), { method: "DELETE" });
export const fireSchedule = (name: string) => json<{ execution_id: string }>(`${at("schedules", name)}/fire`, body({}));

export interface BackfillAsked {
  from: string;
  to: string;
  which: "all" | "missing" | "failed";
  at_once: number;
  name?: string;
  dry_run: boolean;
}

export const backfill = (name: string, asked: BackfillAsked) =>
  json<Backfilled>(`${at("schedules", name)}/backfill`, body(asked));
export const stopBackfill = (name: string) =>
  json<{ stopped: number }>(`${at("schedules", name)}/backfill`, { method: "DELETE" });

export const hooksQuery = queryOptions({
  queryKey: ["hooks"],
  queryFn: ({ signal }) => json<{ hooks: Hook[] }>("/api/hooks", { signal }),
});

export interface PutHook {
  path: string;
  version: number | null;
  payload: Record<string, unknown>;
  context: string | null;
  is_on: boolean;
  /** Left out: the one that is there stays. Null takes it away. */
  secret?: string | null;
}

export const putHook = (name: string, wanted: PutHook) => json<Hook>(at("hooks", name), body(wanted, "PUT"));
export const dropHook = (name: string) => json<void>(at("hooks", name), { method: "DELETE" });

export const alertsQuery = queryOptions({
  queryKey: ["alerts"],
  queryFn: ({ signal }) => json<{ alerts: Alert[] }>("/api/alerts", { signal }),
  refetchInterval: EVERY_MS,
});

export const deliveriesQuery = (name: string) =>
  queryOptions({
    queryKey: ["alerts", name, "deliveries"],
    queryFn: ({ signal }) => json<{ deliveries: Delivery[] }>(`${at("alerts", name)}/deliveries?limit=100`, { signal }),
  });

export const testAlert = (name: string) => json<{ status: string }>(`${at("alerts", name)}/test`, body({}));
