/** What a comparison says: the verdict, both sides, the first difference, inputs and texts. */
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { TextDiff } from "@/editor/YamlEditor";
import { brief } from "@/pages/run/panels/events/summary";
import { useWide } from "@/pages/run/panels/wide";
import { counted, Duration, Icon, Num, StatusBadge, Time } from "@/ui";
import { Block } from "./Block";
import { type Compared, isSame, parted, type Side, timesOf, verdictOf } from "./differences";
import { Links } from "./Links";
import { Nodes } from "./Nodes";

export function Result({ compared }: { compared: Compared }) {
  const same = isSame(compared);
  return (
    <>
      <p className={same ? "cmp-verdict cmp-same" : "cmp-verdict"} role="status">
        <Icon name={same ? "ok" : "compare"} />
        <span>
          {verdictOf(compared)}
          {!same && !compared.is_complete && (
            <span className="quiet"> (only the beginnings of these runs were compared)</span>
          )}
        </span>
      </p>
      <div className="cmp-sides">
        <SideCard side={compared.left} other={compared.right} />
        <SideCard side={compared.right} other={compared.left} />
      </div>
      {compared.first !== null && <First compared={compared} />}
      {compared.inputs.length > 0 && <Inputs compared={compared} />}
      {!compared.same_document && <Texts compared={compared} />}
      <Nodes nodes={compared.nodes} />
      {compared.edges.length > 0 && <Links edges={compared.edges} />}
    </>
  );
}

function SideCard({ side, other }: { side: Side; other: Side }) {
  const ratio =
    side.duration_ms !== null && other.duration_ms !== null ? timesOf(other.duration_ms, side.duration_ms) : "";
  return (
    <section className="cmp-side" aria-label={`Run ${side.execution_id}`}>
      <header>
        <StatusBadge state={side.status} />
        <Link to="/runs/$run" params={{ run: side.execution_id }} className="cmp-name">
          {side.name} <span className="mono">{side.execution_id}</span>
        </Link>
        {side.label !== null && <span className="quiet">{side.label}</span>}
      </header>
      <dl>
        <div>
          <dt>Started</dt>
          <dd>
            <Time value={side.started_at * 1000} as="full" />
          </dd>
        </div>
        <div>
          <dt>Took</dt>
          <dd>
            <Duration ms={side.duration_ms} since={side.started_at * 1000} />{" "}
            {ratio !== "" && <span className="quiet">{ratio}</span>}
          </dd>
        </div>
        <div>
          <dt>Events</dt>
          <dd>
            <Num value={side.events} />
          </dd>
        </div>
        <div>
          <dt>Document</dt>
          <dd className="ellipsis" title={`${side.file}, digest ${side.digest}`}>
            {side.file.split("/").at(-1)} <span className="mono quiet">{side.digest.slice(0, 8)}</span>
          </dd>
        </div>
      </dl>
    </section>
  );
}

/** Literals of these lines are in backticks, which only get in the way of what differs. */
const plain = (line: string | null) => line?.replaceAll("`", "") ?? null;

function First({ compared }: { compared: Compared }) {
  if (compared.first === null) return null;
  const first = { ...compared.first, left: plain(compared.first.left), right: plain(compared.first.right) };
  const parts = first.left !== null && first.right !== null ? parted(first.left, first.right) : null;
  const line = (side: "left" | "right") => {
    const text = first[side];
    const seq = side === "left" ? first.left_seq : first.right_seq;
    const run = compared[side].execution_id;
    return (
      <div className="cmp-first">
        {text === null ? (
          <p className="quiet">This run ends before this event.</p>
        ) : (
          <pre>
            {parts === null ? (
              text
            ) : (
              <>
                <span className="quiet">{parts.before}</span>
                {parts[side] !== "" && <mark className={`cmp-mark-${side}`}>{parts[side]}</mark>}
                <span className="quiet">{parts.after}</span>
              </>
            )}
          </pre>
        )}
        {seq !== null && (
          <Link to="/runs/$run" params={{ run }} search={{ at: seq, event: seq, node: first.node ?? undefined }}>
            <Icon name="timeline" size={14} /> {run} at event {counted(seq)}
          </Link>
        )}
      </div>
    );
  };
  return (
    <Block
      title="First difference"
      aside={first.node === null ? undefined : <code className="ui-literal">{first.node}</code>}
    >
      <div className="cmp-sides">
        {line("left")}
        {line("right")}
      </div>
    </Block>
  );
}

function Inputs({ compared }: { compared: Compared }) {
  return (
    <Block title="Inputs">
      <div className="cmp-scroll">
        <table className="ui-table cmp-table">
          <caption className="visually-hidden">Inputs that differ</caption>
          <thead>
            <tr>
              <th scope="col">Input</th>
              <th scope="col">Left</th>
              <th scope="col">Right</th>
            </tr>
          </thead>
          <tbody>
            {compared.inputs.map((one) => (
              <tr key={one.path}>
                <th scope="row" className="mono">
                  {one.path}
                </th>
                <td className="cmp-value cmp-left">{shown(one.left)}</td>
                <td className="cmp-value cmp-right">{shown(one.right)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Block>
  );
}

function shown(value: unknown): ReactNode {
  if (value === null || value === undefined) return <span className="quiet">none</span>;
  return typeof value === "string" ? JSON.stringify(value.slice(0, 300)) : brief(value, 300);
}

function Texts({ compared }: { compared: Compared }) {
  const [box, isWide] = useWide(760);
  return (
    <Block title="Document">
      <div className="cmp-text" ref={box}>
        <TextDiff
          before={compared.left_text}
          after={compared.right_text}
          beforeLabel={`As ${compared.left.execution_id} ran it`}
          afterLabel={`As ${compared.right.execution_id} ran it`}
          isUnified={!isWide}
        />
      </div>
    </Block>
  );
}
