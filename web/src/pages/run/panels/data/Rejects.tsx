import { Badge, counted, Prose, sentence } from "@/ui";
import type { Rows } from "../ask";
import { rejectOf } from "./cells";

/** Rows that were rejected: why, where they stood, and what they were. */
export function Rejects({ rows, onMore }: { rows: Rows; onMore?: (() => void) | undefined }) {
  return (
    <div className="rp-rejects">
      <ul>
        {rows.rows.map((row, at) => {
          const { code, message, file, line, column, raw, rest } = rejectOf(rows.columns, row);
          const filled = rest.filter((one) => one.cell.kind !== "null");
          return (
            // biome-ignore lint/suspicious/noArrayIndexKey: rows have no name but their place.
            <li key={at} className="rp-reject">
              <p className="reject-reason">
                {message === "" ? "No reason was given" : <Prose text={sentence(message)} />}{" "}
                {code !== "" && <Badge tone="failed">{code}</Badge>}
              </p>
              {(file !== "" || line !== "" || column !== "") && (
                <p className="reject-place">
                  {file !== "" && (
                    <span className="mono" title={file}>
                      {file.split("/").slice(-2).join("/")}
                    </span>
                  )}
                  {line !== "" && <span>line {line}</span>}
                  {column !== "" && (
                    <span>
                      column <span className="mono">{column}</span>
                    </span>
                  )}
                </p>
              )}
              {raw !== "" && <pre className="reject-line">{raw}</pre>}
              {filled.length > 0 && (
                <p className="reject-rest">
                  {filled.map((one) => (
                    <span key={one.name}>
                      <span className="quiet">{one.name}</span>{" "}
                      <span className="mono">{one.cell.text.slice(0, 200)}</span>
                    </span>
                  ))}
                </p>
              )}
            </li>
          );
        })}
      </ul>
      {onMore !== undefined && (
        <button type="button" className="rp-link" onClick={onMore}>
          Show more of {rows.total === null ? "them" : counted(rows.total)}
        </button>
      )}
    </div>
  );
}
