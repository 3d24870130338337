/** What the selected node was given and what came of it; the variables of the execution around it. */
import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useEffect, useId, useRef, useState } from "react";
import {
  Button,
  bytes,
  CopyButton,
  counted,
  EmptyState,
  ErrorState,
  Icon,
  IconButton,
  Input,
  Loading,
  plural,
  Select,
  sentence,
} from "@/ui";
import { ValueTree } from "@/ui/ValueTree";
import { useRunPage } from "../context";
import { type Values as Answer, askValues, type Value } from "./ask";
import { fields } from "./events/event";
import { elementOf, partsOf } from "./places";
import "./panels.css";

/** The execution, not of the node: they come last, and are closed beside a node. */
const AROUND = ["workload", "globals", "ctx", "results", "outcome", "execution_error"];

export default function Values() {
  const page = useRunPage();
  const { run, scope, node, part, moment } = page;
  const asked = part ?? node;
  const at = page.at ?? moment?.seq ?? null;
  const { data, error, isPlaceholderData, refetch } = useQuery({
    queryKey: ["run", run, "values", scope, asked, at],
    queryFn: ({ signal }) => askValues({ run, scope, node: asked, at }, {}, signal),
    enabled: moment !== undefined,
    placeholderData: (before, query) =>
      query?.queryKey[4] === asked && query.queryKey[3] === scope ? before : undefined,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const before = useBefore(data, `${scope} ${asked}`, at, isPlaceholderData);
  if (error !== null && data === undefined)
    return <ErrorState error={error} title="The values could not be loaded" onRetry={() => void refetch()} />;
  if (data === undefined) return <Loading rows={8} label="Loading the values" />;
  const own = data.values.filter((one) => node !== null && !AROUND.includes(one.id));
  const around = data.values.filter((one) => node === null || AROUND.includes(one.id));
  const isOfLoop =
    node !== null && moment?.nodes[node]?.fan != null && data.run !== null && partsOf(data.run).index === null;
  const load = async (value: string, path: string, offset: number) => {
    const got = await askValues({ run, scope, node: asked, at }, { value, path, offset, limit: 200 });
    const found = got.values.find((one) => one.id === value);
    if (found === undefined) throw new Error("the server sent another value");
    return found;
  };
  const section = (one: Value, isOpen: boolean) => (
    <Section
      key={one.id}
      value={one}
      before={before?.values.find((other) => other.id === one.id)}
      isOpen={isOpen}
      load={(path, offset) => load(one.id, path, offset)}
    />
  );
  return (
    <div className="rp-side rp-val" aria-busy={isPlaceholderData}>
      {node !== null && <Runs node={node} answer={data} />}
      {node !== null && own.length === 0 && (
        <p className="quiet">
          {data.run === null ? `${node} has not run by this moment.` : "It has produced nothing by this moment."}
        </p>
      )}
      {own.map((one, index) => section(one, !isAttempt(one) || (!isOfLoop && !isAttempt(own[index + 1]))))}
      {node !== null && around.length > 0 && <h2 className="val-around">The execution</h2>}
      {around.map((one) => section(one, node === null))}
      {data.values.length === 0 && <EmptyState icon="code" title="No values by this moment" />}
    </div>
  );
}

const isAttempt = (value: Value | undefined) => value?.id.startsWith("attempt:") === true;

/** What was shown at the moment before, of the same thing. */
function useBefore(data: Answer | undefined, what: string, at: number | null, isOld: boolean): Answer | undefined {
  const kept = useRef<{ what: string; at: number | null; data: Answer; before: Answer | undefined } | null>(null);
  const [before, setBefore] = useState<Answer | undefined>(undefined);
  useEffect(() => {
    if (data === undefined || isOld) return;
    const known = kept.current;
    const last = known === null || known.what !== what ? undefined : known.at === at ? known.before : known.data;
    kept.current = { what, at, data, before: last };
    setBefore(last);
  }, [data, what, at, isOld]);
  return before;
}

interface SectionProps {
  value: Value;
  before: Value | undefined;
  isOpen: boolean;
  load: (path: string, offset: number) => Promise<Value>;
}

function Section({ value, before, isOpen: isFirstOpen, load }: SectionProps) {
  const [isOpen, setOpen] = useState(isFirstOpen);
  const isChanged = before !== undefined && JSON.stringify(before.value) !== JSON.stringify(value.value);
  const title = titleOf(value);
  return (
    <section className="val-section" aria-label={title}>
      <header>
        <button type="button" className="val-title" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          <Icon name={isOpen ? "chevron-down" : "chevron-right"} size={12} />
          {title}
        </button>
        {isChanged && <span className="val-mark">changed</span>}
        <span className="quiet val-size">
          {value.total !== null && typeof value.value === "object"
            ? `${plural(value.total, "entry", "entries")} · `
            : ""}
          {value.size > 0 ? bytes(value.size) : ""}
        </span>
        <CopyButton
          text={() => JSON.stringify(value.value, null, 2)}
          label={value.is_whole ? `Copy ${value.title} as JSON` : `Copy the part of ${value.title} that is here`}
        />
      </header>
      {isOpen && (
        <ValueTree value={value.value} total={value.total} label={value.title} before={before?.value} load={load} />
      )}
    </section>
  );
}

/** The names of tasks stay as they are written; an attempt of a loop says of which element it was. */
function titleOf({ id, title, value }: Value): string {
  if (!id.startsWith("attempt:")) return sentence(title);
  const { iter_index: index } = fields(fields(value).meta);
  return typeof index === "number" ? `${title}, element ${counted(index)}` : title;
}

/** Which run of the node, and which element of a loop. */
function Runs({ node, answer }: { node: string; answer: Answer }) {
  const page = useRunPage();
  const state = page.moment?.nodes[node];
  const { run: chosen, index } = answer.run === null ? { run: null, index: null } : partsOf(answer.run);
  const fan = state?.fan ?? null;
  const isJob = page.graph?.kind === "job";
  const hasElements = fan !== null && (fan.total === null || fan.total > 0) && chosen !== null;
  const id = useId();
  const [text, setText] = useState(index === null ? "" : String(index));
  useEffect(() => setText(index === null ? "" : String(index)), [index]);
  if (answer.runs.length < 2 && !hasElements) return null;

  function onElement(event: FormEvent) {
    event.preventDefault();
    const wanted = Number(text);
    if (chosen === null) return;
    if (text.trim() === "") page.select(node, chosen);
    else if (Number.isSafeInteger(wanted) && wanted >= 0) page.select(node, elementOf(chosen, wanted, isJob));
  }

  const step = (to: number) => chosen !== null && page.select(node, elementOf(chosen, to, isJob));
  return (
    <div className="val-runs">
      {answer.runs.length > 1 && (
        <>
          <label htmlFor={`${id}-run`}>Run</label>
          <Select
            id={`${id}-run`}
            choices={answer.runs.map((one, at) => ({ value: one, label: at === 0 ? `${one} (latest)` : one }))}
            value={chosen ?? ""}
            onChange={(event) => page.select(node, event.target.value)}
          />
        </>
      )}
      {hasElements && (
        <form onSubmit={onElement}>
          <label htmlFor={`${id}-element`}>Element</label>
          <Input
            id={`${id}-element`}
            inputMode="numeric"
            pattern="[0-9]*"
            value={text}
            placeholder="whole loop"
            onChange={(event) => setText(event.target.value)}
            onBlur={onElement}
            className="val-index"
          />

          <IconButton
            icon="chevron-left"
            label="Previous element"
            size="small"
            disabled={index === null || index === 0}
            onClick={() => index !== null && step(index - 1)}
          />
          <IconButton
            icon="chevron-right"
            label="Next element"
            size="small"
            disabled={fan.total !== null && index !== null && index >= fan.total - 1}
            onClick={() => step(index === null ? 0 : index + 1)}
          />
          {fan.total !== null && <span className="quiet">of {counted(fan.total)}</span>}
          {index !== null && (
            <Button size="small" look="quiet" onClick={() => chosen !== null && page.select(node, chosen)}>
              Whole loop
            </Button>
          )}
        </form>
      )}
    </div>
  );
}
