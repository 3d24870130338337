import { useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import {
  Badge,
  Button,
  day,
  Field,
  FormDialog,
  Input,
  Prose,
  plural,
  Select,
  StatusBadge,
  Table,
  Td,
  Th,
  toast,
  useSending,
} from "@/ui";
import { inZone, zoned } from "./cron";
import { type Backfilled, backfill, type Schedule } from "./queries";

const WEEK_MS = 7 * 86_400_000;
const WHICH = [
  { value: "missing", label: "Slots without a run" },
  { value: "failed", label: "Slots whose run failed" },
  { value: "all", label: "All" },
];

/** Runs slots of the past. What it would do is always shown first. */
export function BackfillDialog({ schedule, onClose }: { schedule: Schedule; onClose: () => void }) {
  const queries = useQueryClient();
  const [from, setFrom] = useState(day(new Date(Date.now() - WEEK_MS)));
  const [to, setTo] = useState(day(new Date()));
  const [which, setWhich] = useState<"all" | "missing" | "failed">("missing");
  const [atOnce, setAtOnce] = useState("1");
  const [plan, setPlan] = useState<Backfilled | null>(null);
  const sending = useSending();
  const wrong =
    Number.isInteger(Number(atOnce)) && Number(atOnce) >= 1 && Number(atOnce) <= 100
      ? null
      : "this must be a number from 1 to 100";

  async function ask(isDry: boolean) {
    const answer = await backfill(schedule.name, { from, to, which, at_once: Number(atOnce), dry_run: isDry });
    if (isDry) return setPlan(answer);
    toast("done", `${plural(answer.queued, "slot")} of ${schedule.name} will run`);
    await queries.invalidateQueries({ queryKey: ["schedules"] });
    onClose();
  }

  function change(set: () => void) {
    set();
    setPlan(null);
  }

  return (
    <FormDialog
      sending={sending}
      title={`Backfill ${schedule.name}`}
      verb="Show what it would run"
      look={plan === null ? "primary" : "plain"}
      isWrong={wrong !== null}
      more={
        plan !== null && (
          <Button
            look="primary"
            icon="play"
            disabled={plan.queued === 0}
            isBusy={sending.isBusy}
            onClick={() => void sending.send(() => ask(false))}
          >
            Run {plural(plan.queued, "slot")}
          </Button>
        )
      }
      onSend={() => ask(true)}
      onClose={onClose}
    >
      <div className="schedules-pair">
        <Field label="From" hint={`A date or a time, in ${schedule.zone}`}>
          {(control) => (
            <Input
              {...control}
              value={from}
              autoFocus
              onChange={(event) => change(() => setFrom(event.target.value))}
            />
          )}
        </Field>
        <Field label="To" hint="Included; a date means its whole day">
          {(control) => <Input {...control} value={to} onChange={(event) => change(() => setTo(event.target.value))} />}
        </Field>
      </div>
      <div className="schedules-pair">
        <Field label="Which slots">
          {(control) => (
            <Select
              {...control}
              value={which}
              choices={WHICH}
              onChange={(event) => change(() => setWhich(event.target.value as typeof which))}
            />
          )}
        </Field>
        <Field label="At a time" error={wrong} hint="If the schedule lets its runs overlap">
          {(control) => (
            <Input
              {...control}
              inputMode="numeric"
              value={atOnce}
              onChange={(event) => change(() => setAtOnce(event.target.value))}
            />
          )}
        </Field>
      </div>
      {plan !== null && <Plan plan={plan} zone={schedule.zone} />}
    </FormDialog>
  );
}

function Plan({ plan, zone }: { plan: Backfilled; zone: string }) {
  return (
    <section aria-label="Slots that would run" aria-live="polite" className="schedules-plan">
      <p>
        <strong>{plural(plan.queued, "slot")}</strong> of {plan.slots.length} would run.
      </p>
      {plan.slots.length > 0 && (
        <Table caption="The slots of the period">
          <thead>
            <tr>
              <Th>Slot</Th>
              <Th>So far</Th>
              <Th>Now</Th>
            </tr>
          </thead>
          <tbody>
            {plan.slots.slice(0, 200).map((one) => {
              const at = zoned(inZone(one.slot, zone));
              return (
                <tr key={one.slot}>
                  <Td>
                    {at.day} {at.clock} <span className="quiet">{at.offset}</span>
                  </Td>
                  <Td>
                    {one.status === null ? (
                      <span className="quiet">nothing</span>
                    ) : one.run === null ? (
                      one.status
                    ) : (
                      <Link to="/runs/$run" params={{ run: one.run }}>
                        <StatusBadge state={one.status} />
                      </Link>
                    )}
                  </Td>
                  <Td>
                    {one.is_queued ? (
                      <Badge tone="running">runs</Badge>
                    ) : (
                      <span className="quiet">
                        <Prose text={one.why ?? "left out"} />
                      </span>
                    )}
                  </Td>
                </tr>
              );
            })}
          </tbody>
        </Table>
      )}
      {plan.slots.length > 200 && (
        <p className="quiet">and {plural(plan.slots.length - 200, "more slot", "more slots")}</p>
      )}
    </section>
  );
}
