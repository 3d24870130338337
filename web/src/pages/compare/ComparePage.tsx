/** Two runs side by side: what they were given, what they were made from, what came of them, and where they first parted. */
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { answered, api } from "@/api/client";
import { Button, clock, day, EmptyState, ErrorState, Icon, Loading } from "@/ui";
import { candidates, type Run } from "./differences";
import { Result } from "./Result";
import "./compare.css";

const route = getRouteApi("/shell/compare");
const LISTED = 200;

export function ComparePage() {
  const { left, right } = route.useSearch();
  const navigate = route.useNavigate();
  const { data: listed, error } = useQuery({
    queryKey: ["runs", "to-compare"],
    queryFn: ({ signal }) => answered(api.GET("/api/executions", { params: { query: { limit: LISTED } }, signal })),
  });
  const runs = listed?.runs ?? [];
  const go = (to: { left?: string; right?: string }) => void navigate({ search: (now) => ({ ...now, ...to }) });
  const suggested = candidates(runs, left ?? right).same[0];
  return (
    <div className="cmp">
      <h1 className="visually-hidden">Compare two runs</h1>
      <div className="cmp-pick">
        <RunPicker label="Left run" runs={runs} chosen={left} other={right} onChoose={(run) => go({ left: run })} />
        <Button
          icon="compare"
          look="quiet"
          disabled={left === undefined && right === undefined}
          onClick={() => go({ left: right, right: left })}
        >
          Swap
        </Button>
        <RunPicker label="Right run" runs={runs} chosen={right} other={left} onChoose={(run) => go({ right: run })} />
      </div>
      {left !== undefined && right !== undefined ? (
        <Comparison left={left} right={right} />
      ) : error !== null ? (
        <ErrorState error={error} title="The runs could not be listed" />
      ) : (
        <EmptyState
          icon="compare"
          title={left === undefined && right === undefined ? "Pick two runs" : "Pick the other run"}
          actions={
            suggested !== undefined &&
            (left !== undefined || right !== undefined) && (
              <Button
                look="primary"
                onClick={() =>
                  go(left === undefined ? { left: suggested.execution_id } : { right: suggested.execution_id })
                }
              >
                Compare with {suggested.execution_id}, the latest other run of {suggested.name}
              </Button>
            )
          }
        >
          {listed?.runs.length === 0
            ? "There are no runs yet."
            : "Two runs of the same document tell you the most: how their inputs and results differ, and where they first diverged."}
        </EmptyState>
      )}
    </div>
  );
}

interface PickerProps {
  label: string;
  runs: readonly Run[];
  chosen: string | undefined;
  other: string | undefined;
  onChoose: (run: string) => void;
}

const when = (iso: string) => `${day(new Date(iso))} ${clock(new Date(iso))}`;

function RunPicker({ label, runs, chosen, other, onChoose }: PickerProps) {
  const { same, rest } = candidates(runs, other);
  const isListed = runs.some((one) => one.execution_id === chosen);
  const options = (all: readonly Run[]) =>
    all.map((one) => (
      <option key={one.execution_id} value={one.execution_id}>
        {one.name} · {one.execution_id.slice(0, 12)}
        {one.label === null ? "" : ` · ${one.label}`} · {one.crashed ? "crashed" : one.status} · {when(one.started_at)}
      </option>
    ));
  return (
    <label className="cmp-picker">
      <span className="ui-field-label">{label}</span>
      <span className="ui-select-frame">
        <select className="ui-input ui-select" value={chosen ?? ""} onChange={(event) => onChoose(event.target.value)}>
          {chosen === undefined && <option value="">Pick a run …</option>}
          {chosen !== undefined && !isListed && <option value={chosen}>{chosen}</option>}
          {same.length > 0 ? (
            <>
              <optgroup label="Runs of the same document">{options(same)}</optgroup>
              <optgroup label="Other runs">{options(rest)}</optgroup>
            </>
          ) : (
            options(rest)
          )}
        </select>
        <Icon name="chevron-down" size={12} />
      </span>
    </label>
  );
}

function Comparison({ left, right }: { left: string; right: string }) {
  const { data, error, refetch } = useQuery({
    queryKey: ["compare", left, right],
    queryFn: ({ signal }) => answered(api.GET("/api/compare", { params: { query: { left, right } }, signal })),
  });
  if (left === right)
    return (
      <EmptyState icon="info" title="Both sides are the same run">
        Pick a different run on one side.
      </EmptyState>
    );
  if (error !== null)
    return <ErrorState error={error} title="The runs could not be compared" onRetry={() => void refetch()} />;
  if (data === undefined) return <Loading rows={10} label="Comparing the runs" />;
  return <Result compared={data} />;
}
