/** Why the selected node ran, waits, failed or was skipped; without a selection, why the run is in the state that it is in. */
import { useQuery } from "@tanstack/react-query";
import {
  Badge,
  Button,
  counted,
  EmptyState,
  ErrorState,
  Icon,
  Loading,
  Prose,
  StatusBadge,
  StatusIcon,
  sentence,
} from "@/ui";
import { type NodeState, useRunPage } from "../context";
import { askWhy, type Reason } from "./ask";
import { elementOf, partsOf } from "./places";
import "./panels.css";

export default function Why() {
  const { node } = useRunPage();
  return node === null ? <WhyRun /> : <WhyNode node={node} />;
}

function WhyNode({ node }: { node: string }) {
  const page = useRunPage();
  const { run, scope, part, moment } = page;
  const asked = part ?? node;
  // While the run goes the answer changes with its events; at a moment it never does.
  const at = page.at ?? moment?.seq ?? null;
  const { data, error, isPending, isPlaceholderData, refetch } = useQuery({
    queryKey: ["run", run, "why", scope, asked, at],
    queryFn: ({ signal }) => askWhy({ run, scope, node: asked, at }, signal),
    enabled: moment !== undefined,
    placeholderData: (before) => (before !== undefined && before.node === asked ? before : undefined),
    staleTime: Number.POSITIVE_INFINITY,
  });
  const state = moment?.nodes[node];
  if (error !== null && data === undefined)
    return <ErrorState error={error} title={`Nothing is known about ${asked}`} onRetry={() => void refetch()} />;
  if (isPending || data === undefined) return <Loading rows={7} label="Loading the reasons" />;
  return (
    <article className="rp-side rp-why" aria-busy={isPlaceholderData}>
      <header className="why-head">
        <p className="why-headline">
          <StatusIcon state={data.status} size={18} />
          <span>
            <Told reason={data.headline} />
          </span>
        </p>
        {part !== null && part !== state?.run && (
          <Button size="small" look="quiet" icon="arrow-left" onClick={() => page.select(node)}>
            All of {node}
          </Button>
        )}
      </header>
      {state !== undefined && <Failures node={node} state={state} />}
      {data.because.map((section) => (
        <section key={section.title} className="why-section">
          <h2>{sentence(section.title)}</h2>
          <ul>
            {section.lines.map((reason, at) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: the sentences of an answer keep their places.
              <li key={at}>
                <Told reason={reason} />
              </li>
            ))}
          </ul>
        </section>
      ))}
      {data.because.length === 0 && <p className="quiet">The log says nothing more about it.</p>}
    </article>
  );
}

/** A sentence, with the event and the line of the document that it rests on. */
function Told({ reason }: { reason: Reason }) {
  const page = useRunPage();
  const { seq, file, line, node } = reason;
  const scope = typeof reason.scope === "string" ? reason.scope : page.scope;
  function onNode() {
    if (scope !== page.scope) page.stepInto(scope);
    page.select(node);
  }
  return (
    <>
      <Prose text={sentence(reason.text)} />{" "}
      <span className="why-links">
        {node !== null && (node !== page.node || scope !== page.scope) && (
          <button type="button" className="rp-chip" onClick={onNode} title={`Select ${node}`}>
            <Icon name="graph" size={12} /> {node}
          </button>
        )}
        {seq !== null && (
          <>
            <button type="button" className="rp-chip" onClick={() => page.showEvent(seq)} title={`Show event ${seq}`}>
              #{counted(seq)}
            </button>
            <button
              type="button"
              className="rp-chip rp-chip-icon"
              onClick={() => page.goTo(seq)}
              aria-label={`Go to the moment of event ${seq}`}
              title="Go to this moment"
            >
              <Icon name="timeline" size={12} />
            </button>
          </>
        )}
        {file !== null && line !== null && (
          <button type="button" className="rp-chip" onClick={() => page.showLine(file, line)} title={`${file}:${line}`}>
            <Icon name="code" size={12} /> line {line}
          </button>
        )}
      </span>
    </>
  );
}

/** The elements of a loop that failed, and runs of it, to look at one by one. */
function Failures({ node, state }: { node: string; state: NodeState }) {
  const page = useRunPage();
  const { fan, run } = state;
  if (fan === null || fan.failed === 0 || run === null) return null;
  const { run: loop } = partsOf(run);
  const isJob = page.moment?.kind === "job" && !run.includes("@");
  const chosen = page.part === null ? null : partsOf(page.part).index;
  return (
    <section className="why-failures" aria-label="Elements that failed">
      <span>
        {counted(fan.failed)} of {fan.total === null ? "its" : counted(fan.total)} elements failed:
      </span>
      {fan.failures.map((index) => (
        <button
          key={index}
          type="button"
          className="rp-chip rp-chip-failed"
          aria-pressed={index === chosen}
          onClick={() => page.select(node, elementOf(loop, index, isJob))}
        >
          {counted(index)}
        </button>
      ))}
      {fan.failed > fan.failures.length && (
        <span className="quiet">and {counted(fan.failed - fan.failures.length)} more</span>
      )}
    </section>
  );
}

const GROUPS = [
  ["failed", "Failed"],
  ["retrying", "Retrying"],
  ["running", "Running"],
] as const;

function WhyRun() {
  const page = useRunPage();
  const { moment, marks, graph } = page;
  if (moment === undefined) return <Loading rows={6} label="Loading the state of the run" />;
  const nodes = Object.entries(moment.nodes);
  const order = new Map(graph?.nodes.map((one, at) => [one.id, at]));
  const title = (id: string) => graph?.nodes.find((one) => one.id === id)?.title ?? id;
  const shown = GROUPS.map(([status, words]) => ({
    words,
    all: nodes
      .filter(([, one]) => one.status === status)
      .sort(([one], [other]) => (order.get(one) ?? 0) - (order.get(other) ?? 0)),
  })).filter((group) => group.all.length > 0);
  const withFailures = nodes.filter(([, one]) => one.status !== "failed" && (one.fan?.failed ?? 0) > 0);
  const inside = moment.executions.filter((one) => one.status === "failed" && one.parent === moment.scope);
  const firstError = marks?.first_error ?? null;
  return (
    <article className="rp-side rp-why">
      <header className="why-head">
        <p className="why-headline">
          <StatusBadge state={moment.status} />
          <span>
            <Prose text={sentence(moment.status_reason ?? moment.error ?? saying(moment.status))} />
          </span>
        </p>
        {moment.status_reason !== null && moment.error !== null && (
          <p>
            <Prose text={sentence(moment.error)} />
          </p>
        )}
        {firstError !== null && (
          <span className="why-links">
            <button type="button" className="rp-chip" onClick={() => page.goTo(firstError)}>
              <Icon name="timeline" size={12} /> the first failure
            </button>
            <button type="button" className="rp-chip" onClick={() => page.showEvent(firstError)}>
              #{counted(firstError)}
            </button>
          </span>
        )}
      </header>
      {shown.map(({ words, all }) => (
        <section key={words} className="why-section">
          <h2>
            {words} <Badge>{counted(all.length)}</Badge>
          </h2>
          <ul>
            {all.slice(0, 50).map(([id, one]) => (
              <li key={id}>
                <NodeButton id={id} title={title(id)} state={one} said={one.error ?? one.reason} />
              </li>
            ))}
          </ul>
        </section>
      ))}
      {withFailures.length > 0 && (
        <section className="why-section">
          <h2>Continued after failures</h2>
          <ul>
            {withFailures.map(([id, one]) => (
              <li key={id}>
                <NodeButton
                  id={id}
                  title={title(id)}
                  state={one}
                  said={`${counted(one.fan?.failed ?? 0)} of ${one.fan?.total === null ? "its" : counted(one.fan?.total ?? 0)} elements failed`}
                />
              </li>
            ))}
          </ul>
        </section>
      )}
      {inside.length > 0 && (
        <section className="why-section">
          <h2>Failed inside</h2>
          <ul>
            {inside.slice(0, 50).map((one) => (
              <li key={one.scope}>
                <button type="button" className="why-node" onClick={() => page.stepInto(one.scope)}>
                  <StatusIcon state={one.status} /> <span className="why-node-name">{one.name}</span>
                  <span className="quiet mono">{one.scope}</span>
                </button>
              </li>
            ))}
          </ul>
        </section>
      )}
      {shown.length + withFailures.length === 0 && (
        <EmptyState icon="why" title="Why?">
          Select a step or a component to see why it ran, waits, failed or was skipped.
        </EmptyState>
      )}
    </article>
  );
}

function saying(status: string): string {
  const words: Record<string, string> = {
    running: "the run is in progress",
    completed: "everything that had to run has run",
    failed: "a failure was not handled",
    cancelled: "it was cancelled",
    interrupted: "it was stopped before its end and can be resumed",
    crashed: "its process is gone and it can be resumed",
  };
  return words[status] ?? status;
}

function NodeButton({ id, title, state, said }: { id: string; title: string; state: NodeState; said: string | null }) {
  const page = useRunPage();
  return (
    <button type="button" className="why-node" onClick={() => page.select(id)}>
      <StatusIcon state={state.status} /> <span className="why-node-name">{title}</span>
      {said !== null && (
        <span className="why-node-said">
          <Prose text={sentence(said)} />
        </span>
      )}
    </button>
  );
}
