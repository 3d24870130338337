import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useSession } from "@/api/session";
import { Actions } from "@/shell/Actions";
import {
  Badge,
  Button,
  Confirm,
  EmptyState,
  ErrorState,
  Facts,
  Icon,
  Loading,
  lasting,
  names,
  Prose,
  plural,
  StatusBadge,
  StatusIcon,
  sentence,
  Table,
  Td,
  Th,
  Time,
  toast,
  toastError,
} from "@/ui";
import { ValueTree } from "@/ui/ValueTree";
import { catalogQuery } from "../documents/queries";
import { BackfillDialog } from "./BackfillDialog";
import { inWords } from "./cron";
import {
  dropSchedule,
  fireSchedule,
  putSchedule,
  type Schedule,
  schedulesQuery,
  slotsQuery,
  stopBackfill,
  timesQuery,
  wantedOf,
} from "./queries";
import { ScheduleDialog } from "./ScheduleDialog";
import { healthOf, MISSED, OVERLAP, stateOfSlot, troubleOf, wordOfSlot } from "./slots";
import { NoDocuments } from "./Target";
import { Times } from "./Times";

interface Props {
  name: string | undefined;
  onChoose: (name: string | undefined) => void;
}

export function Schedules({ name, onChoose }: Props) {
  const { can } = useSession();
  const { data, error, refetch } = useQuery(schedulesQuery);
  const documents = useQuery(catalogQuery);
  const [edited, setEdited] = useState<Schedule | "new" | null>(null);
  const all = data?.schedules ?? [];
  const chosen = all.find((one) => one.name === name);
  const hasDocuments = (documents.data?.documents.length ?? 0) > 0;
  if (data === undefined) {
    return error === null ? (
      <Loading rows={6} />
    ) : (
      <ErrorState error={error} title="The schedules cannot be listed" onRetry={() => void refetch()} />
    );
  }
  const make = can("admin") && hasDocuments && (
    <Button look="primary" icon="plus" onClick={() => setEdited("new")}>
      New schedule
    </Button>
  );
  return (
    <>
      <Actions>{make}</Actions>
      {all.length === 0 ? (
        !hasDocuments && documents.data !== undefined ? (
          <NoDocuments what="Schedules" />
        ) : (
          <EmptyState icon="schedules" title="There are no schedules" actions={make}>
            A schedule runs a document of the catalog at set times.
          </EmptyState>
        )
      ) : (
        <div className={names("schedules-panes", chosen !== undefined && "has-details")}>
          <List all={all} chosen={chosen?.name} onChoose={onChoose} />
          {chosen !== undefined && (
            <Details
              key={chosen.name}
              schedule={chosen}
              onEdit={() => setEdited(chosen)}
              onClose={() => onChoose(undefined)}
            />
          )}
          {name !== undefined && chosen === undefined && (
            <p className="quiet schedules-none">There is no schedule {name}.</p>
          )}
        </div>
      )}
      {edited !== null && (
        <ScheduleDialog
          schedule={edited === "new" ? null : edited}
          taken={all.map((one) => one.name)}
          onClose={() => setEdited(null)}
          onSaved={(saved) => {
            setEdited(null);
            onChoose(saved);
          }}
        />
      )}
    </>
  );
}

function List({
  all,
  chosen,
  onChoose,
}: {
  all: readonly Schedule[];
  chosen: string | undefined;
  onChoose: (name: string) => void;
}) {
  return (
    <div className="schedules-list">
      <Table caption="Schedules">
        <thead>
          <tr>
            <Th>Schedule</Th>
            <Th>When</Th>
            <Th>Runs</Th>
            <Th>Next</Th>
            <Th>Last</Th>
          </tr>
        </thead>
        <tbody>
          {all.map((one) => {
            const trouble = troubleOf(one);
            const words = inWords(one.cron);
            return (
              <tr key={one.name} className={names(one.name === chosen && "is-chosen", !one.is_on && "is-off")}>
                <Td>
                  <button
                    type="button"
                    className="schedules-name"
                    aria-pressed={one.name === chosen}
                    onClick={() => onChoose(one.name)}
                  >
                    {one.name}
                  </button>
                  {!one.is_on && <Badge icon="pause">paused</Badge>}
                  {trouble !== null && (
                    <Badge tone={trouble.tone} icon="warning" title={trouble.text}>
                      {trouble.tone === "failed" ? "refused" : trouble.text}
                    </Badge>
                  )}
                </Td>
                <Td>
                  <span title={one.cron}>{words ?? <code>{one.cron}</code>}</span>{" "}
                  <span className="quiet">{one.zone}</span>
                </Td>
                <Td className="mono">
                  {one.path}
                  {one.version !== null && <span className="quiet">@{one.version}</span>}
                </Td>
                <Td>{one.is_on ? <Time value={one.next_at} /> : <span className="quiet">–</span>}</Td>
                <Td>
                  {one.running.length > 0 ? (
                    <StatusBadge state="running">
                      {one.running.length === 1 ? "Running" : `${one.running.length} running`}
                    </StatusBadge>
                  ) : one.last_run !== null ? (
                    <Link to="/runs/$run" params={{ run: one.last_run }}>
                      <Time value={one.last_slot} />
                    </Link>
                  ) : (
                    <Time value={one.last_slot} />
                  )}
                </Td>
              </tr>
            );
          })}
        </tbody>
      </Table>
    </div>
  );
}

function Details({ schedule, onEdit, onClose }: { schedule: Schedule; onEdit: () => void; onClose: () => void }) {
  const { can } = useSession();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [dialog, setDialog] = useState<"fire" | "delete" | "backfill" | null>(null);
  const [isBusy, setBusy] = useState(false);

  async function done(doing: Promise<unknown>, said: string, after: () => void = () => undefined) {
    setBusy(true);
    try {
      await doing;
      toast("done", said);
      setDialog(null);
      after();
      await queries.invalidateQueries({ queryKey: ["schedules"] });
    } catch (error) {
      toastError(error);
    }
    setBusy(false);
  }

  async function fire() {
    setBusy(true);
    try {
      const { execution_id } = await fireSchedule(schedule.name);
      await navigate({ to: "/runs/$run", params: { run: execution_id } });
    } catch (error) {
      toastError(error);
      setBusy(false);
    }
  }

  return (
    <section className="schedules-details" aria-label={`The schedule ${schedule.name}`}>
      <header>
        <h2>{schedule.name}</h2>
        <Button size="small" look="quiet" icon="close" onClick={onClose} aria-label="Close the details" />
      </header>
      <div className="schedules-actions">
        {can("run") && (
          <Button size="small" icon="play" onClick={() => setDialog("fire")}>
            Run now
          </Button>
        )}
        {can("admin") && (
          <>
            <Button
              size="small"
              icon={schedule.is_on ? "pause" : "play"}
              isBusy={isBusy && dialog === null}
              onClick={() =>
                void done(
                  putSchedule(schedule.name, { ...wantedOf(schedule), is_on: !schedule.is_on }),
                  schedule.is_on ? `Paused ${schedule.name}` : `Resumed ${schedule.name}`,
                )
              }
            >
              {schedule.is_on ? "Pause" : "Resume"}
            </Button>
            <Button size="small" icon="edit" onClick={onEdit}>
              Edit
            </Button>
          </>
        )}
        {can("run") && (
          <Button size="small" icon="step-back" onClick={() => setDialog("backfill")}>
            Backfill
          </Button>
        )}
        {can("admin") && (
          <Button size="small" icon="trash" onClick={() => setDialog("delete")}>
            Delete
          </Button>
        )}
      </div>
      {schedule.last_error && (
        <p className="schedules-error" role="status">
          <Icon name="error" size={14} /> <Prose text={sentence(schedule.last_error)} />
        </p>
      )}
      <Facts
        facts={[
          [
            "When",
            <>
              {inWords(schedule.cron) ?? ""} <code className="ui-literal schedules-cron">{schedule.cron}</code>
            </>,
          ],
          ["Time zone", schedule.zone],
          [
            "Document",
            <Link
              key="path"
              to="/documents/catalog/$"
              params={{ _splat: schedule.path }}
              search={{ version: schedule.version ?? undefined }}
              className="mono"
            >
              {schedule.path}
              {schedule.version !== null ? `@${schedule.version}` : ", newest"}
            </Link>,
          ],
          schedule.context !== null && ["Context", <code key="context">{schedule.context}</code>],
          ["Missed slots", MISSED[schedule.missed] ?? schedule.missed],
          ["While one is running", OVERLAP[schedule.overlap] ?? schedule.overlap],
          schedule.deadline_s !== null && ["Deadline", `${lasting(schedule.deadline_s * 1000)} after its slot`],
        ]}
      />
      {Object.keys(schedule.payload).length > 0 && (
        <div>
          <h3>Inputs</h3>
          <ValueTree value={schedule.payload} label="Inputs" hasCopy />
        </div>
      )}
      <Slots
        schedule={schedule}
        canStop={can("run")}
        onStop={() => void done(stopBackfill(schedule.name), "Slots that were waiting in backfills are dropped")}
      />
      {schedule.is_on && <Upcoming schedule={schedule} />}
      <Confirm
        isOpen={dialog === "fire"}
        title={`Run ${schedule.name} now?`}
        verb="Run now"
        isBusy={isBusy}
        onClose={() => setDialog(null)}
        onConfirm={() => void fire()}
      >
        <p>
          Starts a run of <code>{schedule.path}</code> with the inputs of the schedule. Its slots stay as they are.
        </p>
      </Confirm>
      <Confirm
        isOpen={dialog === "delete"}
        title={`Delete ${schedule.name}?`}
        verb="Delete the schedule"
        isDangerous
        isBusy={isBusy}
        onClose={() => setDialog(null)}
        onConfirm={() => void done(dropSchedule(schedule.name), `Deleted ${schedule.name}`, onClose)}
      >
        <p>It will not fire again. Its runs stay.</p>
      </Confirm>
      {dialog === "backfill" && <BackfillDialog schedule={schedule} onClose={() => setDialog(null)} />}
    </section>
  );
}

function Slots({ schedule, canStop, onStop }: { schedule: Schedule; canStop: boolean; onStop: () => void }) {
  const { data, error } = useQuery(slotsQuery(schedule.name));
  if (data === undefined)
    return error === null ? <Loading rows={4} /> : <ErrorState error={error} title="The past slots cannot be shown" />;
  const slots = [...data.slots].reverse();
  const health = healthOf(slots);
  const queued = slots.filter((slot) => slot.backfill !== null && slot.state === "queued").length;
  return (
    <div className="schedules-slots">
      <h3>
        Past slots
        {health.missed > 0 && <Badge tone="interrupted">{health.missed} missed</Badge>}
        {health.failed > 0 && <Badge tone="failed">{health.failed} failed</Badge>}
        {health.late > 0 && <Badge tone="retrying">{health.late} late</Badge>}
        {queued > 0 && canStop && (
          <Button size="small" icon="stop" onClick={onStop}>
            Stop the backfill ({queued} waiting)
          </Button>
        )}
      </h3>
      {slots.length === 0 ? (
        <p className="quiet">It has not fired yet.</p>
      ) : (
        <>
          <div className="schedules-strip" aria-hidden="true">
            {[...slots]
              .slice(0, 60)
              .reverse()
              .map((slot) => (
                <StatusIcon key={slot.slot} state={stateOfSlot(slot)} size={14} />
              ))}
          </div>
          <Table caption="Past slots, the latest first">
            <thead>
              <tr>
                <Th>Slot</Th>
                <Th>Outcome</Th>
                <Th>Run</Th>
              </tr>
            </thead>
            <tbody>
              {slots.slice(0, 30).map((slot) => (
                <tr key={slot.slot}>
                  <Td>
                    <Time value={slot.slot} as="short" />
                  </Td>
                  <Td>
                    <span className="schedules-fate">
                      <StatusBadge state={stateOfSlot(slot)}>{wordOfSlot(slot)}</StatusBadge>
                      {slot.is_late && <Badge tone="retrying">late</Badge>}
                      {slot.backfill !== null && <Badge title={slot.backfill}>backfill</Badge>}
                      {slot.attempt > 1 && <span className="quiet">{plural(slot.attempt, "run")}</span>}
                      {slot.note !== null && (
                        <span className="quiet">
                          <Prose text={slot.note} />
                        </span>
                      )}
                    </span>
                  </Td>
                  <Td className="mono">
                    {slot.run !== null && (
                      <Link to="/runs/$run" params={{ run: slot.run }}>
                        {slot.run.slice(0, 12)}
                      </Link>
                    )}
                  </Td>
                </tr>
              ))}
            </tbody>
          </Table>
        </>
      )}
    </div>
  );
}

function Upcoming({ schedule }: { schedule: Schedule }) {
  const { data } = useQuery(timesQuery(schedule.cron, schedule.zone, 5));
  return (
    <div>
      <h3>Next</h3>
      <Times times={data?.times ?? []} />
    </div>
  );
}
