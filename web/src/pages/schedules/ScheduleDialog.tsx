import { useQuery } from "@tanstack/react-query";
import { useDeferredValue, useEffect, useMemo, useState } from "react";
import { ApiError } from "@/api/errors";
import { Checkbox, Field, Input, Prose, Select, sentence } from "@/ui";
import { inWords } from "./cron";
import { putSchedule, type Schedule, timesQuery } from "./queries";
import { MISSED, OVERLAP } from "./slots";
import { Times } from "./Times";
import { TriggerDialog } from "./TriggerDialog";

interface Props {
  schedule: Schedule | null;
  taken: readonly string[];
  onClose: () => void;
  onSaved: (name: string) => void;
}

const PAUSE_MS = 250;
const EXAMPLES = ["*/15 * * * *", "0 * * * *", "0 6 * * *", "0 6 * * 1-5", "0 0 1 * *"];

export function ScheduleDialog({ schedule, taken, onClose, onSaved }: Props) {
  const [cron, setCron] = useState(schedule?.cron ?? "0 6 * * *");
  const [zone, setZone] = useState(schedule?.zone ?? Intl.DateTimeFormat().resolvedOptions().timeZone ?? "UTC");
  const [missed, setMissed] = useState(schedule?.missed ?? "last");
  const [overlap, setOverlap] = useState(schedule?.overlap ?? "allow");
  const [deadline, setDeadline] = useState(schedule?.deadline_s ? String(schedule.deadline_s / 60) : "");
  const [isOn, setOn] = useState(schedule?.is_on ?? true);
  const preview = usePreview(cron, zone);
  const wrongDeadline = deadline === "" || Number(deadline) > 0 ? null : "this must be a number of minutes";
  const cronError =
    preview.error instanceof ApiError && isAbout(preview.error, "zone") === false ? preview.error.message : null;
  const zoneError = preview.error instanceof ApiError && cronError === null ? preview.error.message : null;
  const deadline_s = deadline === "" ? null : Number(deadline) * 60;
  return (
    <TriggerDialog
      kind="schedule"
      from={schedule}
      taken={taken}
      example="nightly-orders"
      size="wide"
      isWrong={wrongDeadline !== null || preview.error !== null}
      put={(name, runs) => putSchedule(name, { ...runs, cron, zone, missed, overlap, deadline_s, is_on: isOn })}
      queryKey={["schedules"]}
      onClose={onClose}
      onSaved={onSaved}
      aside={
        <>
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
                  "It would never fire."
                )}
              </p>
            )}
          </section>
        </>
      }
    >
      {(isTried) => (
        <>
          <div className="schedules-pair">
            <Field label="Missed slots" hint="While no server was running">
              {(control) => (
                <Select
                  {...control}
                  value={missed}
                  choices={choices(MISSED)}
                  onChange={(event) => setMissed(event.target.value)}
                />
              )}
            </Field>
            <Field label="If the run before is still going">
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
            <Checkbox label="Enabled" checked={isOn} onChange={(event) => setOn(event.target.checked)} />
          </div>
        </>
      )}
    </TriggerDialog>
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
  return {
    times: data?.times ?? [],
    error: isEmpty ? new Error("a cron expression and a time zone are needed") : error,
    isOld,
  };
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
