/** What the fleet's figures mean. */
import type { components } from "@/api/schema";

type Schemas = components["schemas"];
export type Worker = Schemas["WorkerOut"];
export type Lease = Schemas["LeaseOut"];
export type Loss = Schemas["LostLeaseOut"];
export type Pool = Schemas["PoolOut"];
export type Server = Schemas["ServerOut"];

export type WorkerState = "alive" | "draining" | "lost";

export function stateOf(worker: Worker): WorkerState {
  if (!worker.is_alive) return "lost";
  return worker.is_draining ? "draining" : "alive";
}

/** The age of a heartbeat now, when it was so old at the time of the answer. */
export function ageNow(age_s: number, answeredAt: number, now: number): number {
  return age_s * 1000 + Math.max(0, now - answeredAt);
}

/** Workers that are there come first, then the lost ones, each by name. */
export function inOrder(workers: readonly Worker[]): Worker[] {
  const rank = { alive: 0, draining: 1, lost: 2 };
  return [...workers].sort(
    (a, b) => rank[stateOf(a)] - rank[stateOf(b)] || a.pool.localeCompare(b.pool) || a.name.localeCompare(b.name),
  );
}

/**
 * The node that a lease is about, from its key: `run/scope#attempt`, `step@2[5]` and the like. It is what the page of the run selects;
 * null when the key does not say.
 */
export function nodeOf(lease: Lease): string | null {
  const scope = scopeOf(lease);
  const name = /([\p{L}_][\p{L}\p{N}_-]*)(?:@\d+)?(?:\[\d+(?:[-:]\d+)?\])*$/u.exec(scope)?.[1];
  return name ?? null;
}

/** What of the key is not the run. */
export function scopeOf(lease: Lease): string {
  const rest = lease.key.startsWith(lease.execution_id) ? lease.key.slice(lease.execution_id.length) : lease.key;
  return rest.replace(/^[/:|#]+/, "").replace(/[#|:]\d+$/, "");
}

export interface Waiting {
  readonly held: readonly Lease[];
  readonly waiting: readonly Lease[];
}

export function parted(leases: readonly Lease[]): Waiting {
  const held = leases.filter((lease) => lease.worker !== null);
  const waiting = leases.filter((lease) => lease.worker === null).sort((a, b) => b.age_s - a.age_s);
  return { held, waiting };
}

/** Whether a worker that is there could take a lease: it is in the pool and can do what is needed. */
export function canBeTaken(lease: Lease, workers: readonly Worker[]): boolean {
  return workers.some(
    (worker) =>
      stateOf(worker) === "alive" &&
      worker.pool === lease.pool &&
      lease.needs.every((need) => worker.can.includes(need)),
  );
}
