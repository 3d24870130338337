import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { EmptyState, ErrorState, Icon, Input, Loading, names } from "@/ui";
import { type Column, idOf, origins, portsOf, type Traced, uses } from "./lineage";
import { type Asked, lineageOf } from "./queries";

interface Props {
  document: Asked;
  /** Names the document: the same one is asked for once. */
  digest: string;
  isStale: boolean;
  node: string | null;
  onSelect: (component: string) => void;
}

/** The columns of a job: for one of them what it is made of, and what is made of it. */
export function LineagePane({ document, digest, isStale, node, onSelect }: Props) {
  const { data, error, isPending } = useQuery({
    queryKey: ["lineage", digest],
    queryFn: ({ signal }) => lineageOf(document, signal),
    enabled: !isStale,
    staleTime: Number.POSITIVE_INFINITY,
    placeholderData: (before) => before,
  });
  const [chosen, setChosen] = useState<Column | null>(null);
  const [query, setQuery] = useState("");
  const ports = useMemo(() => (data === undefined ? [] : portsOf(data)), [data]);

  if (error !== null && data === undefined) return <ErrorState error={error} title="The lineage cannot be shown" />;
  if (isPending || data === undefined) return <Loading />;
  if (ports.length === 0) {
    return (
      <EmptyState icon="data" title="No columns are known">
        Columns are known where a component declares them, or where a file can be read.
      </EmptyState>
    );
  }
  const word = query.toLowerCase();
  const listed = ports
    .filter(
      (port) => node === null || word !== "" || port.component === node || !ports.some((one) => one.component === node),
    )
    .map((port) => ({
      ...port,
      columns: port.columns.filter((one) => `${port.component}.${one.name}`.toLowerCase().includes(word)),
    }))
    .filter((port) => port.columns.length > 0 || word === "");
  return (
    <div className="lineage">
      <div className="lineage-list">
        <Input
          icon="search"
          type="search"
          aria-label="Search columns"
          placeholder="Search columns"
          value={query}
          onChange={(event) => setQuery(event.target.value)}
        />
        {node !== null && word === "" && ports.some((one) => one.component === node) && (
          <p className="quiet">
            Columns of <code>{node}</code>, where the cursor is
          </p>
        )}
        {listed.map((port) => (
          <section key={`${port.component}.${port.port}`} aria-label={`${port.component}.${port.port}`}>
            <h3 className="mono">
              {port.component}
              <span className="quiet">.{port.port}</span>
            </h3>
            <ul>
              {port.columns.map((column) => {
                const here = { component: port.component, port: port.port, column: column.name };
                const isChosen = chosen !== null && idOf(chosen) === idOf(here);
                return (
                  <li key={column.name}>
                    <button
                      type="button"
                      className={names("lineage-column", isChosen && "is-chosen")}
                      aria-pressed={isChosen}
                      onClick={() => setChosen(isChosen ? null : here)}
                    >
                      <span className="mono">{column.name}</span>
                      <span className="quiet">{column.type}</span>
                    </button>
                  </li>
                );
              })}
            </ul>
          </section>
        ))}
      </div>
      {chosen === null ? (
        <p className="quiet lineage-hint">Choose a column to see where it comes from, and where it goes.</p>
      ) : (
        <div className="lineage-trace">
          <Trace
            title="Comes from"
            icon="arrow-left"
            none="nowhere else: it begins here"
            columns={origins(data, chosen)}
            onSelect={onSelect}
          />
          <p className="lineage-self mono">
            {chosen.component}.{chosen.port} <strong>{chosen.column}</strong>
          </p>
          <Trace
            title="Goes to"
            icon="arrow-right"
            none="nowhere further"
            columns={uses(data, chosen)}
            onSelect={onSelect}
          />
        </div>
      )}
    </div>
  );
}

function Trace(props: {
  title: string;
  icon: "arrow-left" | "arrow-right";
  none: string;
  columns: readonly Traced[];
  onSelect: (component: string) => void;
}) {
  return (
    <section aria-label={props.title}>
      <h3>
        <Icon name={props.icon} size={14} /> {props.title}
      </h3>
      {props.columns.length === 0 ? (
        <p className="quiet">{props.none}</p>
      ) : (
        <ul>
          {props.columns.map((one) => (
            <li key={idOf(one)}>
              <button type="button" className="lineage-column" onClick={() => props.onSelect(one.component)}>
                <span className="mono">
                  <span className="quiet">
                    {one.component}
                    {one.port !== null && `.${one.port}`}
                  </span>{" "}
                  {one.column}
                </span>
                <span className="quiet">{one.steps === 1 ? "directly" : `${one.steps} steps away`}</span>
              </button>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
