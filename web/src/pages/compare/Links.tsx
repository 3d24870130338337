import { useState } from "react";
import { Checkbox, counted, Num } from "@/ui";
import { Block } from "./Block";
import type { EdgeDifference } from "./differences";
import { Pair } from "./Pair";

/** The links of both runs: those that carried or did something else, or all. */
export function Links({ edges }: { edges: readonly EdgeDifference[] }) {
  const [isAll, setAll] = useState(false);
  const different = edges.filter((edge) => edge.differs);
  const listed = isAll ? edges : different;
  const hasRows = edges.some((edge) => edge.left?.rows != null || edge.right?.rows != null);
  return (
    <Block
      title="Links"
      aside={
        <Checkbox
          label={`Show all ${counted(edges.length)}`}
          checked={isAll}
          onChange={(event) => setAll(event.target.checked)}
          disabled={edges.length === different.length}
        />
      }
    >
      {listed.length === 0 ? (
        <p className="quiet cmp-nothing">
          No difference in {counted(edges.length)} {edges.length === 1 ? "link" : "links"}.
        </p>
      ) : (
        <div className="cmp-scroll">
          <table className="ui-table cmp-table">
            <caption className="visually-hidden">Links of both runs</caption>
            <thead>
              <tr>
                <th scope="col">Link</th>
                <th scope="col">State</th>
                {hasRows && (
                  <>
                    <th scope="col" className="ui-numeric">
                      Rows
                    </th>
                    <th scope="col" className="ui-numeric">
                      Difference
                    </th>
                  </>
                )}
              </tr>
            </thead>
            <tbody>
              {listed.map((edge) => (
                <tr key={edge.edge}>
                  <th scope="row" className="mono">
                    {edge.label}
                  </th>
                  <td>
                    <Pair
                      differs={edge.left?.state !== edge.right?.state}
                      left={edge.left?.state}
                      right={edge.right?.state}
                    />
                  </td>
                  {hasRows && (
                    <>
                      <td className="ui-numeric">
                        <Pair
                          differs={edge.left?.rows !== edge.right?.rows}
                          left={<Num value={edge.left?.rows} />}
                          right={<Num value={edge.right?.rows} />}
                        />
                      </td>
                      <td className="ui-numeric">{delta(edge)}</td>
                    </>
                  )}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Block>
  );
}

function delta(edge: EdgeDifference): string {
  const left = edge.left?.rows ?? null;
  const right = edge.right?.rows ?? null;
  if (left === null || right === null || left === right) return "";
  return `${right > left ? "+" : "−"}${counted(Math.abs(right - left))}`;
}
