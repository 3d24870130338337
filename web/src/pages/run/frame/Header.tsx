import { Fragment, type ReactNode } from "react";
import {
  Badge,
  Button,
  CopyButton,
  counted,
  Icon,
  type IconName,
  lasting,
  Menu,
  Prose,
  pathEnd,
  StatusBadge,
  sentence,
  stateOf,
  Time,
} from "@/ui";
import { goingFor, useServerNow } from "../clock";
import { type Moment, useRunPage } from "../context";
import { type Crumb, countsOf, crumbsOf, siblingsOf } from "./facts";
import { RunActions } from "./RunActions";
import { useHeader } from "./useHeader";

const KINDS: Record<string, IconName> = { playbook: "playbook", job: "job" };

export function Header() {
  const page = useRunPage();
  const { moment, at, marks } = page;
  const now = useHeader();
  if (moment === undefined) return null;
  const crumbs = crumbsOf(moment);
  // Of an execution inside the run: its own state and times.
  const shown = moment.executions.find((one) => one.scope === moment.scope) ?? moment;
  // Of a long run that the server still reads, what it has read is not how the run is.
  const isReading = at === null && moment.folded_to < moment.last_seq;
  const status = isReading ? (now?.status ?? moment.status) : shown.status;
  const firstError = marks?.first_error ?? null;
  return (
    <header className="run-head">
      <div className="run-head-row">
        {crumbs.length > 1 ? (
          <>
            <Crumbs crumbs={crumbs} onStep={page.stepInto} />
            <Siblings moment={moment} onStep={page.stepInto} />
          </>
        ) : (
          <h1 className="run-head-name ellipsis">
            <Icon name={KINDS[moment.kind] ?? "runs"} size={18} /> {moment.name}
          </h1>
        )}
        <StatusBadge state={status} />
        {at !== null && now != null && now.status !== moment.status && (
          <span className="run-head-reason">at this moment; now {now.status}</span>
        )}
        {moment.label !== null && <Badge title="Label">{moment.label}</Badge>}
        {moment.status_reason !== null && (
          <span className="run-head-reason">
            <Prose text={sentence(moment.status_reason)} />
          </span>
        )}
        <div className="run-head-actions">
          <RunActions />
        </div>
      </div>
      <dl className="run-head-facts">
        <Fact name="Started">
          <Time value={shown.started_at * 1000} as="full" />
        </Fact>
        {isReading && <Fact name="Reading the log">{Math.floor((moment.folded_to / moment.last_seq) * 100)} %</Fact>}
        <Fact name={shown.ended_at !== null ? "Took" : status === "running" ? "Running for" : "Ran for"}>
          <Running since={shown.started_at} until={shown.ended_at} moment={moment} />
        </Fact>
        {countsOf(moment.counts).map(([name, count]) => (
          <Fact key={name} name={name}>
            {counted(count)}
          </Fact>
        ))}
        {moment.exit_code !== null && moment.exit_code !== 0 && <Fact name="Exit code">{moment.exit_code}</Fact>}
        <Fact name="Run">
          <code>{moment.execution_id}</code>
          <CopyButton text={moment.execution_id} label="Copy the id of the run" />
        </Fact>
        <div className="run-head-file">
          <dt>File</dt>
          <dd className="mono ellipsis" title={moment.file}>
            {pathEnd(moment.file)}
          </dd>
        </div>
      </dl>
      {moment.error !== null && (
        <div className="run-head-error" role="status">
          <Icon name="failed" size={14} />
          <span className="run-head-error-text">
            <Prose text={sentence(moment.error)} />
          </span>
          {firstError !== null && at !== firstError && (
            <Button size="small" look="quiet" onClick={() => page.goTo(firstError)}>
              Show the first failure
            </Button>
          )}
        </div>
      )}
    </header>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Running({ since, until, moment }: { since: number; until: number | null; moment: Moment }) {
  const isGoing = until === null && moment.is_live;
  const now = useServerNow(isGoing ? 1000 : null, until ?? moment.ts);
  const ms = Math.max(0, now - since) * 1000;
  return <span className="ui-duration">{isGoing ? goingFor(ms) : lasting(ms)}</span>;
}

const MOST_SIBLINGS = 100;

/** From one element of a loop to the others. */
function Siblings({ moment, onStep }: { moment: Moment; onStep: (scope: string) => void }) {
  const siblings = siblingsOf(moment);
  if (siblings.length === 0) return null;
  const at = siblings.findIndex((one) => one.scope === moment.scope);
  const from = Math.max(0, Math.min(at - MOST_SIBLINGS / 2, siblings.length - MOST_SIBLINGS));
  return (
    <Menu
      label={`${counted(at + 1)} of ${counted(siblings.length)}: other executions of the same step`}
      size="small"
      items={siblings.slice(from, from + MOST_SIBLINGS).map((one) => ({
        label: one.scope,
        icon: stateOf(one.status),
        isChecked: one.scope === moment.scope,
        onSelect: () => onStep(one.scope),
      }))}
    >
      {counted(at + 1)} of {counted(siblings.length)}
    </Menu>
  );
}

function Crumbs({ crumbs, onStep }: { crumbs: readonly Crumb[]; onStep: (scope: string) => void }) {
  return (
    <nav aria-label="Executions" className="run-crumbs">
      <h1 className="run-head-name ellipsis">
        {crumbs.map((crumb, at) => (
          <Fragment key={crumb.scope}>
            {at > 0 && <Icon name="chevron-right" size={12} />}
            {at < crumbs.length - 1 ? (
              <button
                type="button"
                className="run-crumb"
                onClick={() => onStep(crumb.scope)}
                title={crumb.scope || undefined}
              >
                {crumb.label}
              </button>
            ) : (
              <span title={crumb.scope} aria-current="true">
                {crumb.label}
              </span>
            )}
          </Fragment>
        ))}
      </h1>
    </nav>
  );
}
