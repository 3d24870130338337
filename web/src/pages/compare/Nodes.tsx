import { useState } from "react";
import { Checkbox, counted, lasting, Prose, StatusIcon } from "@/ui";
import { Block } from "./Block";
import { isDifferent, type NodeDifference } from "./differences";
import { Pair } from "./Pair";

/** The nodes of both runs: those that came to something else, or all. */
export function Nodes({ nodes }: { nodes: readonly NodeDifference[] }) {
  const [isAll, setAll] = useState(false);
  const different = nodes.filter(isDifferent);
  const listed = isAll ? nodes : different;
  return (
    <Block
      title="Nodes"
      aside={
        <Checkbox
          label={`Show all ${counted(nodes.length)}`}
          checked={isAll}
          onChange={(event) => setAll(event.target.checked)}
          disabled={nodes.length === different.length}
        />
      }
    >
      {listed.length === 0 ? (
        <p className="quiet cmp-nothing">
          No difference in {counted(nodes.length)} {nodes.length === 1 ? "node" : "nodes"}.
        </p>
      ) : (
        <div className="cmp-scroll">
          <table className="ui-table cmp-table">
            <caption className="visually-hidden">Nodes of both runs</caption>
            <thead>
              <tr>
                <th scope="col">Node</th>
                <th scope="col">State</th>
                <th scope="col" className="ui-numeric">
                  Runs
                </th>
                <th scope="col" className="ui-numeric">
                  Attempt
                </th>
                <th scope="col" className="ui-numeric">
                  Rows out
                </th>
                <th scope="col" className="ui-numeric">
                  Time
                </th>
                <th scope="col">Error</th>
              </tr>
            </thead>
            <tbody>
              {listed.map((one) => (
                <NodeRow key={one.node} one={one} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Block>
  );
}

function NodeRow({ one }: { one: NodeDifference }) {
  const { node, left, right, differs } = one;
  const error = differs.includes("error") || differs.includes("status");
  return (
    <tr>
      <th scope="row">{node}</th>
      <td>
        <Pair
          differs={differs.includes("status")}
          left={left && <StatusIcon state={left.status} />}
          right={right && <StatusIcon state={right.status} />}
        />
      </td>
      <td className="ui-numeric">
        <Pair
          differs={differs.includes("runs")}
          left={left && counted(left.runs)}
          right={right && counted(right.runs)}
        />
      </td>
      <td className="ui-numeric">
        <Pair
          differs={differs.includes("attempts")}
          left={left && tried(left.attempt)}
          right={right && tried(right.attempt)}
        />
      </td>
      <td className="ui-numeric">
        <Pair
          differs={differs.includes("rows")}
          left={left && rowsOf(left.rows_out)}
          right={right && rowsOf(right.rows_out)}
        />
      </td>
      <td className="ui-numeric">
        <Pair differs left={left && lasting(left.ms)} right={right && lasting(right.ms)} isQuiet />
      </td>
      <td className="cmp-error">
        {error && left?.error != null && (
          <p className="cmp-left">
            <Prose text={left.error} />
          </p>
        )}
        {error && right?.error != null && (
          <p className="cmp-right">
            <Prose text={right.error} />
          </p>
        )}
      </td>
    </tr>
  );
}

/** Components are not tried again: they have no attempts to count. */
const tried = (attempt: number) => (attempt === 0 ? null : counted(attempt));

function rowsOf(rows: Record<string, number>): string {
  const all = Object.entries(rows);
  if (all.length === 0) return "";
  return all
    .map(([port, count]) => (all.length === 1 && port === "main" ? counted(count) : `${port} ${counted(count)}`))
    .join(", ");
}
