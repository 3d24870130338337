/** Rows of a job: how many went through each port, what they were, which were rejected and why, and where their columns come from. */
import { useInfiniteQuery, useMutation, useQuery } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useState } from "react";
import { useSession } from "@/api/session";
import { Badge, Button, EmptyState, ErrorState, Icon, Loading, Num, names, Prose, plural, sentence } from "@/ui";
import { useRunPage } from "../context";
import { askPorts, askPreview, askRows, type Port, type Rows } from "./ask";
import { isOfRejects } from "./data/cells";
import { LineageView } from "./data/LineageView";
import { type Field, upstream } from "./data/lineage";
import { Rejects } from "./data/Rejects";
import { RowTable } from "./data/RowTable";
import "./panels.css";

const PAGE = 200;
const PREVIEW = 50;

export default function Data() {
  const page = useRunPage();
  const { graph, moment } = page;
  const kind = graph?.kind ?? moment?.kind;
  if (kind === undefined) return <Loading rows={6} label="Loading the rows" />;
  if (kind !== "job") {
    return (
      <EmptyState
        icon="data"
        title="Steps have no rows"
        actions={<Button onClick={() => page.showPanel("values")}>Show values</Button>}
      >
        Rows go along the data links of jobs. What the steps of a playbook were given, and what came of them, is under
        Values.
      </EmptyState>
    );
  }
  return <Ports />;
}

function usePorts() {
  const { run, scope, moment } = useRunPage();
  // Which ports there are changes only with what has run.
  return useQuery({
    queryKey: ["run", run, "ports", scope, moment?.last_seq],
    queryFn: ({ signal }) => askPorts(run, scope, signal),
    placeholderData: (before) => before,
  });
}

function Ports() {
  const page = useRunPage();
  const { node, edge, graph, moment } = page;
  const { data, error, refetch } = usePorts();
  const [chosen, setChosen] = useState<{ component: string; port: string } | null>(null);
  const link = graph?.edges.find((one) => one.id === edge && one.kind === "data");
  const links = useMemo(() => graph?.edges.filter((one) => one.kind === "data") ?? [], [graph]);

  const ports = useMemo(() => withCounts(data?.ports ?? [], links, moment?.nodes ?? {}), [data, links, moment]);
  const own =
    link !== undefined
      ? ports.filter((one) => one.component === link.source && one.port === (link.port ?? "main"))
      : ports.filter((one) => one.component === node);
  const into =
    link !== undefined
      ? []
      : links
          .filter((one) => one.target === node)
          .map((one) => ({
            via: one.to_port,
            port: ports.find((port) => port.component === one.source && port.port === (one.port ?? "main")),
          }));
  const shown = [...own, ...into.flatMap((one) => (one.port === undefined ? [] : [one.port]))];
  const current =
    shown.find((one) => one.component === chosen?.component && one.port === chosen.port) ??
    own.find((one) => one.is_kept) ??
    shown[0];

  if (error !== null && data === undefined)
    return <ErrorState error={error} title="The ports could not be loaded" onRetry={() => void refetch()} />;
  if (data === undefined) return <Loading rows={6} label="Loading the ports" />;
  if (node === null && link === undefined) return <AllPorts ports={ports} />;
  if (current === undefined) {
    return (
      <EmptyState
        icon="data"
        title={`No rows of ${node ?? link?.label}`}
        actions={<Button onClick={() => page.select(null)}>All ports</Button>}
      >
        No data link begins or ends here.
      </EmptyState>
    );
  }
  return (
    <div className="rp-data">
      <div className="data-ports" role="toolbar" aria-label="Ports">
        {own.map((port) => (
          <PortButton
            key={`${port.component}.${port.port}`}
            port={port}
            label={port.port}
            isChosen={port === current}
            onChoose={setChosen}
          />
        ))}
        {into.some((one) => one.port !== undefined) && <span className="data-from quiet">from</span>}
        {into.map(({ via, port }) =>
          port === undefined ? null : (
            <PortButton
              key={`${via} ${port.component}.${port.port}`}
              port={port}
              label={`${port.component}${port.port === "main" ? "" : `.${port.port}`}`}
              isChosen={port === current}
              onChoose={setChosen}
            />
          ),
        )}
      </div>
      <PortRows key={`${current.component}.${current.port}`} port={current} />
    </div>
  );
}

/** Ports that the log has counted, and those of data links of components that have not ended. */
function withCounts(
  ports: readonly Port[],
  links: readonly { source: string; port?: string | null }[],
  nodes: Record<string, { rows_out: Record<string, number>; rows_so_far: Record<string, number> }>,
): Port[] {
  const found = new Map(ports.map((one) => [`${one.component}.${one.port}`, one]));
  for (const link of links) {
    const port = link.port ?? "main";
    const name = `${link.source}.${port}`;
    const state = nodes[link.source];
    const rows = state?.rows_out[port] ?? state?.rows_so_far[port] ?? null;
    const known = found.get(name);
    if (known === undefined)
      found.set(name, { component: link.source, port, rows, is_kept: false, is_reject: /reject/.test(port) });
    else if (known.rows === null && rows !== null) found.set(name, { ...known, rows });
  }
  return [...found.values()];
}

interface PortButtonProps {
  port: Port;
  label: string;
  isChosen: boolean;
  onChoose: (port: { component: string; port: string }) => void;
}

function PortButton({ port, label, isChosen, onChoose }: PortButtonProps) {
  return (
    <button
      type="button"
      className={names("rp-chip", port.is_reject && (port.rows ?? 0) > 0 && "rp-chip-failed")}
      aria-pressed={isChosen}
      onClick={() => onChoose(port)}
    >
      {port.is_kept && <Icon name="save" size={12} />}
      {label} <Num value={port.rows} isShort />
    </button>
  );
}

function AllPorts({ ports }: { ports: readonly Port[] }) {
  const page = useRunPage();
  const rejects = ports.filter((one) => one.is_reject && (one.rows ?? 0) > 0);
  if (ports.length === 0) {
    return (
      <EmptyState icon="data" title="No rows yet">
        Ports appear here as components produce rows.
      </EmptyState>
    );
  }
  return (
    <div className="rp-side">
      {rejects.length > 0 && (
        <section className="data-rejected" aria-label="Rejected rows">
          {rejects.map((port) => (
            <button
              key={`${port.component}.${port.port}`}
              type="button"
              className="why-node"
              onClick={() => page.select(port.component)}
            >
              <Icon name="warning" /> <span className="why-node-name">{port.component}</span>
              <span>rejected {plural(port.rows ?? 0, "row")}</span>
            </button>
          ))}
        </section>
      )}
      <table className="ui-table data-all">
        <caption className="visually-hidden">Ports and their numbers of rows</caption>
        <thead>
          <tr>
            <th scope="col">Port</th>
            <th scope="col" className="ui-numeric">
              Rows
            </th>
            <th scope="col">
              <span className="visually-hidden">Kept</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {ports.map((port) => (
            <tr key={`${port.component}.${port.port}`}>
              <td>
                <button type="button" className="rp-link" onClick={() => page.select(port.component)}>
                  {port.component}
                </button>
                {port.port !== "main" && <span className={port.is_reject ? "data-reject" : "quiet"}>.{port.port}</span>}
              </td>
              <td className="ui-numeric">
                <Num value={port.rows} />
              </td>
              <td>{port.is_kept && <Badge icon="save">kept</Badge>}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function PortRows({ port }: { port: Port }) {
  return port.is_kept ? <KeptRows port={port} /> : <MadeRows port={port} />;
}

function KeptRows({ port }: { port: Port }) {
  const { run } = useRunPage();
  const { component, port: name } = port;
  const { data, error, refetch, fetchNextPage, hasNextPage, isFetching } = useInfiniteQuery({
    queryKey: ["run", run, "rows", component, name],
    queryFn: ({ pageParam, signal }) => askRows(run, { component, port: name, offset: pageParam, limit: PAGE }, signal),
    initialPageParam: 0,
    getNextPageParam: (last, pages) => {
      const got = pages.reduce((sum, one) => sum + one.rows.length, 0);
      return last.rows.length === 0 || (last.total !== null && got >= last.total) || last.rows.length < PAGE
        ? undefined
        : got;
    },
    staleTime: Number.POSITIVE_INFINITY,
  });
  const rows = useMemo(() => data && joined(data.pages), [data]);
  const more = useCallback(() => {
    if (hasNextPage && !isFetching) void fetchNextPage();
  }, [hasNextPage, isFetching, fetchNextPage]);
  if (error !== null && rows === undefined)
    return <ErrorState error={error} title="The rows could not be loaded" onRetry={() => void refetch()} />;
  if (rows === undefined) return <Loading rows={8} label="Loading the rows" />;
  return <Shown rows={rows} port={port} onEnd={more} hasMore={hasNextPage} />;
}

function joined(pages: readonly Rows[]): Rows | undefined {
  const first = pages[0];
  return first && { ...first, rows: pages.flatMap((one) => one.rows) };
}

function MadeRows({ port }: { port: Port }) {
  const { run, graph, moment } = useRunPage();
  const { can } = useSession();
  const { component, port: name } = port;
  const making = useMutation({ mutationFn: () => askPreview(run, { component, port: name, rows: PREVIEW }) });
  const needed = useMemo(() => upstream(graph?.edges ?? [], component), [graph, component]);
  if (making.data !== undefined) return <Shown rows={making.data} port={port} hasMore={false} />;
  const isOver = moment?.ended_at !== null && moment?.ended_at !== undefined;
  return (
    <div className="data-make">
      {making.error !== null && <ErrorState error={making.error} title="The rows could not be computed again" />}
      <p>
        {port.rows === null
          ? "Nothing is known about these rows yet."
          : port.rows === 0
            ? "No rows passed through here."
            : `${sentence(plural(port.rows, "row"))} passed through here, and ${port.rows === 1 ? "was" : "were"} not kept.`}
      </p>
      {can("run") ? (
        <>
          <p className="quiet">
            The first {PREVIEW} can be computed again, with the document and the inputs of this run. That runs{" "}
            {needed.length === 1 ? "only " : ""}
            {needed.map((one, at) => (
              <span key={one}>
                {at > 0 && (at === needed.length - 1 ? " and " : ", ")}
                <code className="ui-literal">{one}</code>
              </span>
            ))}{" "}
            now: sources may have changed since. Nothing is written.
          </p>
          <Button look="primary" icon="play" isBusy={making.isPending} onClick={() => making.mutate()}>
            {making.isPending ? "Computing rows" : "Compute the first rows again"}
          </Button>
        </>
      ) : (
        <p className="quiet">Your token may look at runs, but not compute rows again.</p>
      )}
      {isOver && (
        <p className="quiet">
          A run with{" "}
          <code className="ui-literal">
            --keep {component}
            {name === "main" ? "" : `.${name}`}
          </code>{" "}
          keeps them all.
        </p>
      )}
    </div>
  );
}

interface ShownProps {
  rows: Rows;
  port: Port;
  onEnd?: () => void;
  hasMore: boolean;
}

function Shown({ rows, port, onEnd, hasMore }: ShownProps) {
  const [field, setField] = useState<Field | null>(null);
  const hasReasons = isOfRejects(rows.columns);
  const [isTable, setTable] = useState(false);
  useEffect(() => setTable(!hasReasons), [hasReasons]);
  const { node } = useRunPage();
  const label = `${port.component}.${port.port}`;
  return (
    <>
      <div className="data-line">
        <span>
          <span className="mono">{label}</span>{" "}
          <span className="quiet">
            {rows.source === "kept"
              ? `${plural(rows.total ?? rows.rows.length, "row")}, kept`
              : rows.total === null
                ? `the first ${plural(rows.rows.length, "row")}, computed again`
                : `all ${plural(rows.total, "row")}, computed again`}
          </span>
        </span>
        {hasReasons && (
          <span className="rp-segments">
            <Button size="small" aria-pressed={!isTable} onClick={() => setTable(false)}>
              Reasons
            </Button>
            <Button size="small" aria-pressed={isTable} onClick={() => setTable(true)}>
              Table
            </Button>
          </span>
        )}
      </div>
      {rows.note !== null && (
        <p className="rp-note">
          <Prose text={sentence(rows.note)} />
        </p>
      )}
      {rows.rows.length === 0 && rows.columns.length === 0 ? (
        <EmptyState icon="data" title="No rows" />
      ) : hasReasons && !isTable ? (
        rows.rows.length === 0 ? (
          <EmptyState icon="ok" title="Nothing was rejected" />
        ) : (
          <Rejects rows={rows} onMore={hasMore ? onEnd : undefined} />
        )
      ) : (
        <RowTable
          label={`Rows of ${label}`}
          columns={rows.columns}
          rows={rows.rows}
          total={rows.total}
          chosen={field !== null && field.component === port.component ? field.column : null}
          onColumn={(column) => setField({ component: port.component, port: port.port, column: column.name })}
          onEnd={onEnd}
        />
      )}
      {field !== null && <LineageView key={node} field={field} onField={setField} onClose={() => setField(null)} />}
    </>
  );
}
