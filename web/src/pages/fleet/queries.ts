import { queryOptions } from "@tanstack/react-query";
import { body, json } from "@/api/client";
import type { Lease, Loss, Pool, Server, Worker } from "./state";

const EVERY_MS = 2_000;

export interface Fleet {
  servers: Server[];
  workers: Worker[];
  pools: Pool[];
  leases: Lease[];
  losses: Loss[];
  /** By this browser's clock. */
  answeredAt: number;
}

/** All at once, so that the parts belong together. Nobody is asked while the page is not seen. */
export const fleetQuery = queryOptions({
  queryKey: ["fleet"],
  queryFn: async ({ signal }): Promise<Fleet> => {
    const [servers, workers, pools, leases, losses] = await Promise.all([
      json<{ servers: Server[] }>("/api/servers", { signal }),
      json<{ workers: Worker[] }>("/api/workers", { signal }),
      json<{ pools: Pool[] }>("/api/pools", { signal }),
      json<{ leases: Lease[] }>("/api/leases?limit=500", { signal }),
      json<{ losses: Loss[] }>("/api/losses?limit=100", { signal }),
    ]);
    return { ...servers, ...workers, ...pools, ...leases, ...losses, answeredAt: Date.now() };
  },
  refetchInterval: EVERY_MS,
  refetchIntervalInBackground: false,
  staleTime: 0,
});

export function drain(worker: string): Promise<unknown> {
  return json(`/api/workers/${encodeURIComponent(worker)}/drain`, body({}));
}
