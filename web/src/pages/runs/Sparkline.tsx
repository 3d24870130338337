import type { StatOut } from "@/api/schema";
import { lasting, plural, stateOf } from "@/ui";

const BAR = 4;
const GAP = 1;
const HEIGHT = 20;
const MOST = 20;

/** How long the last runs of a document took, and how they ended. The run of this row stands out. */
export function Sparkline({ stat, run }: { stat: StatOut; run: string }) {
  const runs = stat.durations_ms.slice(-MOST);
  const skipped = stat.durations_ms.length - runs.length;
  const longest = Math.max(...runs.map((ms) => ms ?? 0), 1);
  const known = runs.filter((ms) => ms !== null).sort((a, b) => a - b);
  const median = known[Math.floor(known.length / 2)];
  const label = `${plural(runs.length, "run")} of ${stat.name}${median === undefined ? "" : `, median ${lasting(median)}`}`;
  const width = MOST * (BAR + GAP) - GAP;
  return (
    <svg className="runs-spark" width={width} height={HEIGHT} role="img" aria-label={label}>
      <title>{label}</title>
      {runs.map((ms, at) => {
        const height = ms === null ? 3 : Math.max(2, Math.round((ms / longest) * HEIGHT));
        const id = stat.runs[skipped + at] ?? "";
        const state = stateOf(stat.statuses[skipped + at] ?? "");
        return (
          <rect
            key={id}
            x={width - (runs.length - at) * (BAR + GAP) + GAP}
            y={HEIGHT - height}
            width={BAR}
            height={height}
            rx={1}
            className={id === run ? "runs-spark-own" : undefined}
            fill={state === "ok" ? "var(--spark, var(--line-control))" : `var(--state-${state})`}
          />
        );
      })}
    </svg>
  );
}
