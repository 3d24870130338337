import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { useSession } from "@/api/session";
import {
  Badge,
  Button,
  Confirm,
  EmptyState,
  ErrorState,
  Icon,
  Loading,
  lasting,
  Num,
  names,
  Prose,
  plural,
  Table,
  Td,
  Th,
  Time,
  toast,
  toastError,
  useNow,
} from "@/ui";
import { drain, type Fleet, fleetQuery } from "./queries";
import { ageNow, canBeTaken, inOrder, type Lease, nodeOf, parted, scopeOf, stateOf, type Worker } from "./state";
import "./fleet.css";

export function FleetPage() {
  const { data, error, refetch } = useQuery(fleetQuery);
  if (data === undefined) {
    return error === null ? (
      <Loading rows={10} />
    ) : (
      <ErrorState error={error} title="The fleet cannot be shown" onRetry={() => void refetch()} />
    );
  }
  const { held, waiting } = parted(data.leases);
  return (
    <div className="fleet">
      <h1 className="visually-hidden">Fleet</h1>
      {error !== null && (
        <p className="fleet-stale" role="status">
          <Icon name="warning" size={14} /> The server does not answer: this is how it was{" "}
          <Time value={data.answeredAt} />.
        </p>
      )}
      <Figures fleet={data} />
      <Servers fleet={data} />
      <Workers fleet={data} />
      <Pools fleet={data} />
      <Section title="Held leases" count={held.length} none="No work is in progress.">
        {held.length > 0 && <Leases leases={held} fleet={data} />}
      </Section>
      <Section title="Waiting leases" count={waiting.length} none="Nothing is waiting for a worker.">
        {waiting.length > 0 && <Leases leases={waiting} fleet={data} isWaiting />}
      </Section>
      <Losses fleet={data} />
    </div>
  );
}

function Figures({ fleet }: { fleet: Fleet }) {
  const alive = fleet.workers.filter((worker) => stateOf(worker) === "alive");
  const slots = alive.reduce((sum, worker) => sum + worker.slots, 0);
  const busy = fleet.workers.reduce((sum, worker) => sum + worker.held, 0);
  const { waiting } = parted(fleet.leases);
  const lost = fleet.workers.filter((worker) => stateOf(worker) === "lost").length;
  return (
    <dl className="fleet-figures">
      <Figure
        name={fleet.servers.length === 1 ? "server" : "servers"}
        value={fleet.servers.length}
        tone={fleet.servers.length === 0 ? "failed" : undefined}
      />
      <Figure
        name={alive.length === 1 ? "worker alive" : "workers alive"}
        value={alive.length}
        tone={alive.length === 0 ? "failed" : undefined}
      />
      <Figure name="slots in use" value={busy} of={slots} />
      <Figure name="waiting" value={waiting.length} tone={waiting.length > 0 ? "retrying" : undefined} />
      <Figure name={lost === 1 ? "worker lost" : "workers lost"} value={lost} tone={lost > 0 ? "crashed" : undefined} />
    </dl>
  );
}

function Figure({ name, value, of, tone }: { name: string; value: number; of?: number; tone?: string }) {
  return (
    <div className={names("fleet-figure", tone !== undefined && `ui-ink-${tone}`)}>
      <dt>{name}</dt>
      <dd>
        <Num value={value} />
        {of !== undefined && <span className="quiet"> of {of}</span>}
      </dd>
    </div>
  );
}

function Section({
  title,
  count,
  none,
  children,
}: {
  title: string;
  count: number;
  none: string;
  children: ReactNode;
}) {
  return (
    <section className="fleet-section">
      <h2>
        {title} {count > 0 && <span className="quiet">{count}</span>}
      </h2>
      {count === 0 ? <p className="quiet">{none}</p> : children}
    </section>
  );
}

function Servers({ fleet }: { fleet: Fleet }) {
  return (
    <Section title="Servers" count={fleet.servers.length} none="No server is alive: submitted runs do not start.">
      <Table caption="Servers">
        <thead>
          <tr>
            <Th>Server</Th>
            <Th>Alive since</Th>
            <Th isNumeric>Partitions</Th>
          </tr>
        </thead>
        <tbody>
          {fleet.servers.map((server) => (
            <tr key={server.id}>
              <Td>
                <span className="fleet-name">
                  <Icon name="server" size={14} />
                  <span title={server.id}>{server.name}</span>
                </span>
              </Td>
              <Td>
                <Time value={server.since} />
              </Td>
              <Td isNumeric>
                <Num value={server.partitions} />
              </Td>
            </tr>
          ))}
        </tbody>
      </Table>
    </Section>
  );
}

const WORDS = { alive: "Alive", draining: "Draining", lost: "Lost" };
const TONES = { alive: "ok", draining: "retrying", lost: "crashed" } as const;

function Workers({ fleet }: { fleet: Fleet }) {
  const { can } = useSession();
  const queries = useQueryClient();
  const [asked, setAsked] = useState<Worker | null>(null);
  const [isBusy, setBusy] = useState(false);
  const canDrain = can("admin") && fleet.workers.some((worker) => !worker.is_inside);

  async function sure() {
    if (asked === null) return;
    setBusy(true);
    try {
      await drain(asked.id);
      toast("done", `Draining ${asked.name}: it finishes its work, and stops`);
      setAsked(null);
      await queries.invalidateQueries({ queryKey: fleetQuery.queryKey });
    } catch (error) {
      toastError(error);
    }
    setBusy(false);
  }

  return (
    <section className="fleet-section">
      <h2>
        Workers <span className="quiet">{fleet.workers.length}</span>
      </h2>
      {fleet.workers.length === 0 ? (
        <EmptyState icon="worker" title="There are no workers">
          The first to start takes what is waiting: <code>penstock worker</code>
        </EmptyState>
      ) : (
        <Table caption="Workers">
          <thead>
            <tr>
              <Th>Worker</Th>
              <Th>State</Th>
              <Th>Last heartbeat</Th>
              <Th>Pool</Th>
              <Th isNumeric>Slots</Th>
              <Th>Can run</Th>
              {canDrain && (
                <Th>
                  <span className="visually-hidden">Actions</span>
                </Th>
              )}
            </tr>
          </thead>
          <tbody>
            {inOrder(fleet.workers).map((worker) => {
              const state = stateOf(worker);
              return (
                <tr key={worker.id} className={names(state === "lost" && "is-lost")}>
                  <Td>
                    <span className="fleet-name">
                      <Icon name="worker" size={14} />
                      <span title={`${worker.id}, Penstock ${worker.version}`}>{worker.name}</span>
                    </span>
                  </Td>
                  <Td>
                    <Badge tone={TONES[state]} icon={TONES[state]}>
                      {WORDS[state]}
                    </Badge>
                  </Td>
                  <Td>
                    <Age age_s={worker.age_s} answeredAt={fleet.answeredAt} isLost={state === "lost"} />
                  </Td>
                  <Td className="mono">{worker.pool}</Td>
                  <Td isNumeric>
                    <Gauge held={worker.held} slots={worker.slots} />
                  </Td>
                  <Td>
                    <Abilities can={worker.can} />
                  </Td>
                  {canDrain && (
                    <Td>
                      {state === "alive" && !worker.is_inside && (
                        <Button size="small" onClick={() => setAsked(worker)} aria-label={`Drain ${worker.name}`}>
                          Drain
                        </Button>
                      )}
                    </Td>
                  )}
                </tr>
              );
            })}
          </tbody>
        </Table>
      )}
      <Confirm
        isOpen={asked !== null}
        title={`Drain ${asked?.name ?? ""}?`}
        verb="Drain the worker"
        isBusy={isBusy}
        onClose={() => setAsked(null)}
        onConfirm={() => void sure()}
      >
        <p>
          It finishes what it has ({plural(asked?.held ?? 0, "lease")}), takes nothing more, and stops. Nothing is lost,
          and it cannot be taken back: start a new worker afterwards.
        </p>
      </Confirm>
    </section>
  );
}

/** How long ago, counting on between answers. */
function Age({ age_s, answeredAt, isLost }: { age_s: number; answeredAt: number; isLost: boolean }) {
  const now = useNow(1000);
  const age = ageNow(age_s, answeredAt, now);
  return (
    <span
      className={names("fleet-age", !isLost && age > 10_000 && "is-late")}
      title={`${age_s.toFixed(1)} s at the last answer`}
    >
      {age < 60_000 ? `${Math.floor(age / 1000)} s ago` : `${lasting(age)} ago`}
    </span>
  );
}

function Gauge({ held, slots }: { held: number; slots: number }) {
  return (
    <span className="fleet-gauge" title={`${held} of ${slots} slots in use`}>
      <meter min={0} max={Math.max(slots, 1)} value={held} aria-label="Slots in use" />
      <span>
        {held}/{slots}
      </span>
    </span>
  );
}

const FEW = 4;

function Abilities({ can }: { can: readonly string[] }) {
  if (can.length === 0) return <span className="quiet">–</span>;
  return (
    <span className="fleet-needs" title={can.join(", ")}>
      {can.slice(0, FEW).map((one) => (
        <Badge key={one}>{one}</Badge>
      ))}
      {can.length > FEW && <span className="quiet">and {can.length - FEW} more</span>}
    </span>
  );
}

function Pools({ fleet }: { fleet: Fleet }) {
  return (
    <Section
      title="Pools"
      count={fleet.pools.length}
      none="There are no pools: no worker is alive, and nothing is waiting."
    >
      <Table caption="Pools">
        <thead>
          <tr>
            <Th>Pool</Th>
            <Th isNumeric>Workers</Th>
            <Th isNumeric>Slots in use</Th>
            <Th isNumeric>Waiting</Th>
          </tr>
        </thead>
        <tbody>
          {fleet.pools.map((pool) => (
            <tr key={pool.name}>
              <Td className="mono">{pool.name}</Td>
              <Td isNumeric>{pool.workers === 0 ? <Badge tone="failed">none</Badge> : <Num value={pool.workers} />}</Td>
              <Td isNumeric>
                <Gauge held={pool.held} slots={pool.slots} />
              </Td>
              <Td isNumeric>
                {pool.waiting > 0 ? (
                  <Badge tone="retrying">{pool.waiting.toLocaleString("en")}</Badge>
                ) : (
                  <Num value={0} />
                )}
              </Td>
            </tr>
          ))}
        </tbody>
      </Table>
    </Section>
  );
}

const SHOWN = 100;

function Leases({ leases, fleet, isWaiting = false }: { leases: readonly Lease[]; fleet: Fleet; isWaiting?: boolean }) {
  const workers = new Map(fleet.workers.map((worker) => [worker.id, worker]));
  return (
    <>
      <Table caption={isWaiting ? "Waiting leases" : "Held leases"}>
        <thead>
          <tr>
            <Th>Run</Th>
            <Th>Part</Th>
            <Th>Pool</Th>
            <Th isNumeric>Attempt</Th>
            {!isWaiting && <Th>Worker</Th>}
            <Th>{isWaiting ? "Waiting for" : "Held for"}</Th>
            {!isWaiting && <Th>Expires in</Th>}
            <Th>Needs</Th>
          </tr>
        </thead>
        <tbody>
          {leases.slice(0, SHOWN).map((lease) => {
            const worker = lease.worker === null ? undefined : workers.get(lease.worker);
            return (
              <tr key={lease.key}>
                <Td className="mono">
                  <Link to="/runs/$run" params={{ run: lease.execution_id }}>
                    {lease.execution_id.slice(0, 12)}
                  </Link>
                </Td>
                <Td className="mono">
                  <NodeLink lease={lease} />
                </Td>
                <Td className="mono">{lease.pool}</Td>
                <Td isNumeric>{lease.attempt}</Td>
                {!isWaiting && <Td>{worker?.name ?? lease.worker}</Td>}
                <Td>
                  <LiveAge age_s={lease.age_s} answeredAt={fleet.answeredAt} />
                </Td>
                {!isWaiting && (
                  <Td>{lease.left_s === null ? <span className="quiet">–</span> : lasting(lease.left_s * 1000)}</Td>
                )}
                <Td>
                  <span className="fleet-needs">
                    {lease.needs.map((need) => (
                      <Badge key={need}>{need}</Badge>
                    ))}
                    {isWaiting && !canBeTaken(lease, fleet.workers) && (
                      <Badge tone="failed" icon="warning">
                        no worker can take it
                      </Badge>
                    )}
                  </span>
                </Td>
              </tr>
            );
          })}
        </tbody>
      </Table>
      {leases.length > SHOWN && (
        <p className="quiet">and {plural(leases.length - SHOWN, "more lease", "more leases")}</p>
      )}
    </>
  );
}

function NodeLink({ lease }: { lease: Lease }) {
  const node = nodeOf(lease);
  const scope = scopeOf(lease);
  if (node === null) return <span>{scope}</span>;
  return (
    <Link to="/runs/$run" params={{ run: lease.execution_id }} search={{ node }} title={lease.key}>
      {scope}
    </Link>
  );
}

function LiveAge({ age_s, answeredAt }: { age_s: number; answeredAt: number }) {
  const now = useNow(1000);
  return <span>{lasting(Math.floor(ageNow(age_s, answeredAt, now) / 1000) * 1000)}</span>;
}

function Losses({ fleet }: { fleet: Fleet }) {
  const workers = new Map(fleet.workers.map((worker) => [worker.id, worker.name]));
  const named = (id: string | null) => (id === null ? null : (workers.get(id) ?? id));
  return (
    <Section
      title="Lost workers and their leases"
      count={fleet.losses.length}
      none="No worker has been lost while it held a lease."
    >
      <Table caption="What became of the leases of workers that were lost">
        <thead>
          <tr>
            <Th>When</Th>
            <Th>Worker</Th>
            <Th>Run</Th>
            <Th>Part</Th>
            <Th>Outcome</Th>
          </tr>
        </thead>
        <tbody>
          {fleet.losses.map((loss) => (
            <tr key={`${loss.execution_id} ${loss.scope} ${loss.at}`}>
              <Td>
                <Time value={loss.at * 1000} />
              </Td>
              <Td>{named(loss.worker) ?? <span className="quiet">unknown</span>}</Td>
              <Td className="mono">
                <Link to="/runs/$run" params={{ run: loss.execution_id }}>
                  {loss.execution_id.slice(0, 12)}
                </Link>
              </Td>
              <Td className="mono">{loss.scope}</Td>
              <Td>
                <Prose text={loss.outcome} />
                {loss.taken_by !== null && !loss.outcome.includes(named(loss.taken_by) ?? "") && (
                  <span className="quiet"> by {named(loss.taken_by)}</span>
                )}
              </Td>
            </tr>
          ))}
        </tbody>
      </Table>
    </Section>
  );
}
