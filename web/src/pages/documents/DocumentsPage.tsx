import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useDeferredValue, useMemo, useRef } from "react";
import { useSession } from "@/api/session";
import { useRunsFeed } from "@/live";
import { Actions } from "@/shell/Actions";
import {
  Badge,
  Button,
  EmptyState,
  ErrorState,
  Icon,
  Input,
  Loading,
  plural,
  Select,
  StatusBadge,
  Table,
  Td,
  Th,
  Time,
  useShortcuts,
} from "@/ui";
import { drafts } from "./drafts";
import { kindIcon } from "./icons";
import { matching, type Row, rowsOf } from "./listed";
import { NewDocument } from "./NewDocument";
import { catalogQuery, filesQuery, latestRunsQuery } from "./queries";
import "./documents.css";

const route = getRouteApi("/shell/documents");
const CHOICES = [
  { value: "", label: "All kinds" },
  { value: "playbook", label: "Playbooks" },
  { value: "job", label: "Jobs" },
  { value: "joblet", label: "Joblets" },
  { value: "project", label: "Projects" },
];

export function DocumentsPage() {
  const { session, can } = useSession();
  const isLocal = session?.is_local ?? false;
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const box = useRef<HTMLInputElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const files = useQuery({ ...filesQuery, enabled: isLocal });
  const filed = useQuery(catalogQuery);
  const runs = useQuery(latestRunsQuery);
  useRunsFeed(() => void runs.refetch());

  const query = useDeferredValue(search.q ?? "");
  const kind = search.view === "new" ? undefined : search.view;
  const rows = useMemo(
    () => rowsOf(files.data?.files ?? [], filed.data?.documents ?? [], runs.data?.runs ?? []),
    [files.data, filed.data, runs.data],
  );
  const shown = useMemo(() => matching(rows, query, kind), [rows, query, kind]);
  const canWrite = isLocal && can("admin");
  const isNew = search.view === "new" && canWrite;
  const choose = (change: { q?: string; view?: string }) =>
    void navigate({ search: (before) => ({ ...before, ...change }), replace: true });

  function move(by: number) {
    const links = [...(list.current?.querySelectorAll<HTMLElement>("a.documents-name") ?? [])];
    const at = links.indexOf(document.activeElement as HTMLElement);
    links[Math.min(Math.max(at + by, 0), links.length - 1)]?.focus();
  }

  useShortcuts("Documents", [
    { keys: ["/"], label: "Search", run: () => box.current?.focus() },
    { keys: ["j", "ArrowDown"], label: "Next document", run: () => move(1) },
    { keys: ["k", "ArrowUp"], label: "Previous document", run: () => move(-1) },
    { keys: ["n"], label: "New document", run: () => choose({ view: "new" }), isDisabled: !canWrite },
  ]);

  const isLoading = filed.isPending || (isLocal && files.isPending);
  const error = filed.error ?? files.error;
  const names = drafts();
  return (
    <div className="documents" ref={list}>
      <Actions>
        {canWrite && (
          <Button look="primary" icon="plus" onClick={() => choose({ view: "new" })}>
            New document
          </Button>
        )}
      </Actions>
      <h1 className="visually-hidden">Documents</h1>
      <div className="documents-tools">
        <Input
          ref={box}
          icon="search"
          type="search"
          aria-label="Search documents"
          placeholder="Search by name, path or state"
          value={search.q ?? ""}
          onChange={(event) => choose({ q: event.target.value || undefined })}
          onKeyDown={(event) => event.key === "ArrowDown" && move(1)}
        />
        <Select
          aria-label="Kind of document"
          choices={CHOICES}
          value={kind ?? ""}
          onChange={(event) => choose({ view: event.target.value || undefined })}
        />
        {!isLoading && <span className="quiet">{plural(shown.length, "document")}</span>}
      </div>
      {isLoading ? (
        <Loading rows={8} />
      ) : error !== null && rows.length === 0 ? (
        <ErrorState
          error={error}
          title="The documents cannot be listed"
          onRetry={() => {
            void filed.refetch();
            if (isLocal) void files.refetch();
          }}
        />
      ) : rows.length === 0 ? (
        <Nothing isLocal={isLocal} root={files.data?.root} canWrite={canWrite} onNew={() => choose({ view: "new" })} />
      ) : shown.length === 0 ? (
        <EmptyState
          icon="search"
          title="No document matches"
          actions={<Button onClick={() => choose({ q: undefined, view: undefined })}>Show all</Button>}
        />
      ) : (
        <>
          {isLocal && (
            <Section
              title="In this folder"
              about={files.data?.root}
              rows={shown.filter((row) => row.origin === "file")}
              drafts={names}
              empty={
                query === "" && kind === undefined ? "There are no documents in this folder yet." : "No match here."
              }
            />
          )}
          {(!isLocal || rows.some((row) => row.origin === "catalog")) && (
            <Section
              title="Catalog"
              about="every version, kept by the server"
              rows={shown.filter((row) => row.origin === "catalog")}
              drafts={names}
              empty="No match here."
            />
          )}
        </>
      )}
      {isNew && (
        <NewDocument
          taken={files.data?.files.map((one) => one.path) ?? []}
          onClose={() => choose({ view: undefined })}
        />
      )}
    </div>
  );
}

function Section(props: {
  title: string;
  about?: string;
  rows: readonly Row[];
  drafts: ReadonlySet<string>;
  empty: string;
}) {
  const { title, about, rows, drafts: names, empty } = props;
  return (
    <section className="documents-section">
      <h2>
        {title} {about !== undefined && <span className="quiet">{about}</span>}
      </h2>
      {rows.length === 0 ? (
        <p className="quiet documents-none">{empty}</p>
      ) : (
        <Table caption={title}>
          <thead>
            <tr>
              <Th>Document</Th>
              <Th>Kind</Th>
              <Th>Last run</Th>
              <Th>Ran</Th>
              <Th>{rows[0]?.origin === "file" ? "Changed" : "Saved"}</Th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.id}>
                <Td>
                  <span className="documents-cell">
                    <DocumentLink row={row} />
                    {names.has(row.id) && <Badge tone="retrying">unsaved</Badge>}
                    {row.version !== null && (
                      <Badge title={`Version ${row.version} is the newest`}>v{row.version}</Badge>
                    )}
                  </span>
                </Td>
                <Td>
                  <span className="documents-kind">
                    <Icon name={kindIcon(row.kind)} size={14} /> {row.kind}
                  </span>
                </Td>
                <Td>
                  {row.run === undefined ? (
                    <span className="quiet">never</span>
                  ) : (
                    <Link to="/runs/$run" params={{ run: row.run.execution_id }} className="documents-run">
                      <StatusBadge state={row.run.status} isCrashed={row.run.crashed} />
                    </Link>
                  )}
                </Td>
                <Td>
                  {row.run === undefined ? <span className="quiet">–</span> : <Time value={row.run.started_at} />}
                </Td>
                <Td>
                  <Time value={row.changedAt} />
                </Td>
              </tr>
            ))}
          </tbody>
        </Table>
      )}
    </section>
  );
}

function DocumentLink({ row }: { row: Row }) {
  const at = row.path.lastIndexOf("/") + 1;
  const words = (
    <>
      {at > 0 && <span className="quiet">{row.path.slice(0, at)}</span>}
      {row.path.slice(at)}
    </>
  );
  return row.origin === "file" ? (
    <Link to="/documents/file/$" params={{ _splat: row.path }} className="documents-name">
      {words}
    </Link>
  ) : (
    <Link to="/documents/catalog/$" params={{ _splat: row.path }} className="documents-name">
      {words}
    </Link>
  );
}

function Nothing(props: { isLocal: boolean; root: string | undefined; canWrite: boolean; onNew: () => void }) {
  if (props.isLocal) {
    return (
      <EmptyState
        icon="documents"
        title="There are no documents here yet"
        actions={
          props.canWrite && (
            <Button look="primary" icon="plus" onClick={props.onNew}>
              New document
            </Button>
          )
        }
      >
        Playbooks, jobs and joblets below <code>{props.root}</code> are listed here.
      </EmptyState>
    );
  }
  return (
    <EmptyState icon="documents" title="The catalog is empty">
      Add a document or a project to it: <code>penstock catalog put sales/orders orders.yaml</code>
    </EmptyState>
  );
}
