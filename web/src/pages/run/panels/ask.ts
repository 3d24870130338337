/** What the panels ask of the API. */
import { answered, api } from "@/api/client";
import type { components } from "@/api/schema";
import type { EventPage } from "./events/event";
import type { EventFilter } from "./events/scan";
import type { LinePage } from "./logs/lines";

export type Schemas = components["schemas"];
export type Why = Schemas["WhyOut"];
export type Reason = Schemas["ReasonOut"];
export type Values = Schemas["ValuesOut"];
export type Value = Schemas["ValueOut"];
export type Port = Schemas["PortOut"];
export type Rows = Schemas["RowsOut"];
export type Column = Schemas["ColumnOut"];
export type Lineage = Schemas["LineageOut"];
export type LineageStep = Schemas["LineageStepOut"];
export type Pinned = Schemas["PinnedOut"];

export async function askEvents(
  run: string,
  request: { after: number; limit: number; filter?: EventFilter; signal?: AbortSignal },
): Promise<EventPage> {
  const { after, limit, filter, signal } = request;
  const page = await answered(
    api.GET("/api/executions/{run}/event-page", {
      params: {
        path: { run },
        query: {
          after,
          limit,
          type: filter !== undefined && filter.types.length > 0 ? [...filter.types] : undefined,
          place: filter?.place || undefined,
          text: filter?.text || undefined,
        },
      },
      signal,
    }),
  );
  return page as unknown as EventPage;
}

export function askLines(
  run: string,
  request: { after: number; limit: number; node: string | null; until: number | null; signal?: AbortSignal },
): Promise<LinePage> {
  const { after, limit, node, until, signal } = request;
  return answered(
    api.GET("/api/executions/{run}/lines", {
      params: { path: { run }, query: { after, limit, node: node ?? undefined, until: until ?? undefined } },
      signal,
    }),
  );
}

export interface Asked {
  run: string;
  node: string | null;
  at: number | null;
  scope: string;
}

const momentOf = ({ at, scope }: Asked) => ({ at: at ?? undefined, scope: scope || undefined });

export function askWhy(asked: Asked, signal?: AbortSignal): Promise<Why> {
  return answered(
    api.GET("/api/executions/{run}/why", {
      params: { path: { run: asked.run }, query: { node: asked.node ?? "", ...momentOf(asked) } },
      signal,
    }),
  );
}

export interface Within {
  value?: string;
  path?: string;
  offset?: number;
  limit?: number;
}

export function askValues(asked: Asked, within: Within = {}, signal?: AbortSignal): Promise<Values> {
  return answered(
    api.GET("/api/executions/{run}/values", {
      params: { path: { run: asked.run }, query: { node: asked.node ?? undefined, ...momentOf(asked), ...within } },
      signal,
    }),
  );
}

export function askPorts(run: string, scope: string, signal?: AbortSignal): Promise<Schemas["PortsOut"]> {
  return answered(
    api.GET("/api/executions/{run}/ports", { params: { path: { run }, query: { scope: scope || undefined } }, signal }),
  );
}

export function askRows(
  run: string,
  request: { component: string; port: string; offset: number; limit: number },
  signal?: AbortSignal,
): Promise<Rows> {
  return answered(api.GET("/api/executions/{run}/rows", { params: { path: { run }, query: request }, signal }));
}

export function askPreview(run: string, request: { component: string; port: string; rows: number }): Promise<Rows> {
  return answered(api.POST("/api/executions/{run}/preview", { params: { path: { run } }, body: request }));
}

export function askLineage(run: string, signal?: AbortSignal): Promise<Lineage> {
  return answered(api.GET("/api/executions/{run}/lineage", { params: { path: { run } }, signal }));
}

export function askDocument(run: string, signal?: AbortSignal): Promise<Pinned> {
  return answered(api.GET("/api/executions/{run}/document", { params: { path: { run } }, signal }));
}
