import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useDeferredValue, useEffect, useMemo, useState } from "react";
import { ApiError } from "@/api/errors";
import { Button, Checkbox, Dialog, Field, Input, Prose, Select, sentence, toast, toastError } from "@/ui";
import { Refusal } from "../documents/RunForm";
import { inWords } from "./cron";
import { putSchedule, type Schedule, timesQuery } from "./queries";
import { MISSED, nameProblem, OVERLAP } from "./slots";
import { payloadOf, Target, targetOf, useTargetForm } from "./Target";
import { Times } from "./Times";

interface Props {
  schedule: Schedule | null;
  taken: readonly string[];
  onClose: () => void;
  onSaved: (name: string) => void;
}

const PAUSE_MS = 250;
const EXAMPLES = ["*/15 * * * *", "0 * * * *", "0 6 * * *", "0 6 * * 1-5", "0 0 1 * *"];

export function ScheduleDialog({ schedule, taken, onClose, onSaved }: Props) {
  const queries = useQueryClient();
  const [name, setName] = useState(schedule?.name ?? "");
  const [cron, setCron] = useState(schedule?.cron ?? "0 6 * * *");
  const [zone, setZone] = useState(schedule?.zone ?? Intl.DateTimeFormat().resolvedOptions().timeZone ?? "UTC");
  const [target, setTarget] = useState(() => targetOf(schedule));
  const [missed, setMissed] = useState(schedule?.missed ?? "last");
  const [overlap, setOverlap] = useState(schedule?.overlap ?? "allow");
  const [deadline, setDeadline] = useState(schedule?.deadline_s ? String(schedule.deadline_s / 60) : "");
  const [isOn, setOn] = useState(schedule?.is_on ?? true);
  const [isTried, setTried] = useState(false);
  const [refusal, setRefusal] = useState<ApiError | null>(null);
  const [isBusy, setBusy] = useState(false);
  const form = useTargetForm(target);
  const preview = usePreview(cron, zone);

  const { payload, errors } = payloadOf(target, form.data?.fields ?? []);
  const wrongName = schedule === null ? nameProblem(name, taken) : null;
  const wrongDeadline = deadline === "" || Number(deadline) > 0 ? null : "a number of minutes is wanted";
  const wrongPath = target.path === "" ? "a document is needed" : null;
  const cronError =
    preview.error instanceof ApiError && isAbout(preview.error, "zone") === false ? preview.error.message : null;
  const zoneError = preview.error instanceof ApiError && cronError === null ? preview.error.message : null;
  const isWrong =
    wrongName !== null ||
    wrongDeadline !== null ||
    wrongPath !== null ||
    preview.error !== null ||
    Object.keys(errors).length > 0;

  async function save(event: FormEvent) {
    event.preventDefault();
    setTried(true);
    if (isWrong) return;
    setBusy(true);
    try {
      await putSchedule(name, {
        cron,
        zone,
        path: target.path,
        version: target.version,
        payload,
        context: target.context === "" ? null : target.context,
        missed,
        overlap,
        deadline_s: deadline === "" ? null : Number(deadline) * 60,
        is_on: isOn,
      });
      await queries.invalidateQueries({ queryKey: ["schedules"] });
      toast("done", schedule === null ? `Made ${name}` : `Saved ${name}`);
      onSaved(name);
    } catch (error) {
      setBusy(false);
      if (error instanceof ApiError && error.status < 500) setRefusal(error);
      else toastError(error);
    }
  }

  return (
    <Dialog
      isOpen
      onClose={onClose}
      size="wide"
      title={schedule === null ? "New schedule" : `Edit ${schedule.name}`}
      actions={
        <>
          <Button onClick={onClose}>Back</Button>
          <Button look="primary" type="submit" form="schedule" isBusy={isBusy}>
            {schedule === null ? "Make the schedule" : "Save the schedule"}
          </Button>
        </>
      }
    >
      <form id="schedule" className="schedules-form" onSubmit={(event) => void save(event)} noValidate>
        <div className="schedules-column">
          {refusal !== null && <Refusal error={refusal} />}
          {schedule === null && (
            <Field label="Name" isRequired error={isTried ? wrongName : null}>
              {(control) => (
                <Input
                  {...control}
                  value={name}
                  autoFocus
                  spellCheck={false}
                  placeholder="nightly-orders"
                  onChange={(event) => setName(event.target.value)}
                />
              )}
            </Field>
          )}
          <Target
            target={target}
            onChange={setTarget}
            errors={isTried ? errors : {}}
            pathError={isTried ? wrongPath : null}
          />
          <div className="schedules-pair">
            <Field label="Slots that were missed" hint="While no server was there">
              {(control) => (
                <Select
                  {...control}
                  value={missed}
                  choices={choices(MISSED)}
                  onChange={(event) => setMissed(event.target.value)}
                />
              )}
            </Field>
            <Field label="While an earlier run goes on">
              {(control) => (
                <Select
                  {...control}
                  value={overlap}
                  choices={choices(OVERLAP)}
                  onChange={(event) => setOverlap(event.target.value)}
                />
              )}
            </Field>
          </div>
          <div className="schedules-pair">
            <Field
              label="Late after (minutes)"
              hint="A run that has not ended by then is late."
              error={isTried ? wrongDeadline : null}
            >
              {(control) => (
                <Input
                  {...control}
                  inputMode="decimal"
                  value={deadline}
                  onChange={(event) => setDeadline(event.target.value)}
                />
              )}
            </Field>
            <Checkbox label="It is on" checked={isOn} onChange={(event) => setOn(event.target.checked)} />
          </div>
        </div>
        <div className="schedules-column schedules-when">
          <Field
            label="Cron expression"
            isRequired
            error={cronError}
            hint={sentence(inWords(cron) ?? "minute, hour, day of the month, month, day of the week")}
          >
            {(control) => (
              <Input
                {...control}
                className="mono"
                list="cron-examples"
                value={cron}
                spellCheck={false}
                onChange={(event) => setCron(event.target.value)}
              />
            )}
          </Field>
          <datalist id="cron-examples">
            {EXAMPLES.map((one) => (
              <option key={one} value={one}>
                {inWords(one)}
              </option>
            ))}
          </datalist>
          <Field label="Time zone" isRequired error={zoneError}>
            {(control) => (
              <Input
                {...control}
                list="zones"
                value={zone}
                spellCheck={false}
                onChange={(event) => setZone(event.target.value)}
              />
            )}
          </Field>
          <Zones />
          <section aria-label="The next ten times" aria-live="polite" className={preview.isOld ? "is-old" : undefined}>
            <h3>The next ten times</h3>
            {preview.error === null ? (
              <Times times={preview.times} />
            ) : (
              <p className="quiet">
                {preview.error instanceof ApiError && preview.error.hint ? (
                  <Prose text={sentence(preview.error.hint)} />
                ) : (
                  "It fires never like this."
                )}
              </p>
            )}
          </section>
        </div>
      </form>
    </Dialog>
  );
}

function choices(words: Record<string, string>) {
  return Object.entries(words).map(([value, label]) => ({ value, label: sentence(label) }));
}

function isAbout(error: ApiError, word: string): boolean {
  return error.message.toLowerCase().includes(word) || error.problems.some((problem) => problem.where?.includes(word));
}

/** The next ten times, a moment after the last key. */
function usePreview(cron: string, zone: string): { times: readonly string[]; error: Error | null; isOld: boolean } {
  const [asked, setAsked] = useState({ cron, zone });
  useEffect(() => {
    const timer = window.setTimeout(() => setAsked({ cron, zone }), PAUSE_MS);
    return () => window.clearTimeout(timer);
  }, [cron, zone]);
  const isEmpty = asked.cron.trim() === "" || asked.zone.trim() === "";
  const { data, error, isFetching } = useQuery({
    ...timesQuery(asked.cron.trim(), asked.zone.trim()),
    enabled: !isEmpty,
    placeholderData: (before) => before,
  });
  const isOld = useDeferredValue(isFetching) || asked.cron !== cron || asked.zone !== zone;
  return { times: data?.times ?? [], error: isEmpty ? new Error("both are needed") : error, isOld };
}

function Zones() {
  const zones = useMemo(() => ["UTC", ...Intl.supportedValuesOf("timeZone")], []);
  return (
    <datalist id="zones">
      {zones.map((zone) => (
        <option key={zone} value={zone} />
      ))}
    </datalist>
  );
}
