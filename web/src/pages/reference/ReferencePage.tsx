import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useDeferredValue, useMemo, useRef } from "react";
import { Badge, Button, EmptyState, ErrorState, Input, Loading, Prose, plural, sentence, useShortcuts } from "@/ui";
import { type ReferenceEntry, referenceQuery } from "../documents/queries";
import { families, found } from "./find";
import "./reference.css";

const route = getRouteApi("/shell/reference");

export function ReferencePage() {
  const { q = "" } = route.useSearch();
  const navigate = route.useNavigate();
  const { data, error, refetch } = useQuery(referenceQuery);
  const query = useDeferredValue(q);
  const groups = useMemo(() => families(found(data?.entries ?? [], query)), [data, query]);
  const box = useRef<HTMLInputElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const set = (text: string) => void navigate({ search: { q: text || undefined }, replace: true });

  function move(by: number) {
    const links = [...(list.current?.querySelectorAll<HTMLElement>(".reference-entry") ?? [])];
    const at = links.indexOf(document.activeElement as HTMLElement);
    links[Math.min(Math.max(at + by, 0), links.length - 1)]?.focus();
  }
  useShortcuts("Reference", [
    { keys: ["/"], label: "Search", run: () => box.current?.focus() },
    { keys: ["j", "ArrowDown"], label: "Next", run: () => move(1) },
    { keys: ["k", "ArrowUp"], label: "Previous", run: () => move(-1) },
  ]);

  if (error !== null)
    return <ErrorState error={error} title="The reference cannot be shown" onRetry={() => void refetch()} />;
  const count = groups.reduce((sum, group) => sum + group.entries.length, 0);
  return (
    <div className="reference" ref={list}>
      <h1 className="visually-hidden">Components and tools</h1>
      <div className="reference-tools">
        <Input
          ref={box}
          icon="search"
          type="search"
          aria-label="Search components and tools"
          placeholder="Search by name, family or what it does"
          value={q}
          autoFocus
          onChange={(event) => set(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === "ArrowDown") move(1);
            if (event.key === "Enter") list.current?.querySelector<HTMLElement>(".reference-entry")?.click();
          }}
        />
        {data !== undefined && <span className="quiet">{plural(count, "entry", "entries")}</span>}
      </div>
      {data === undefined ? (
        <Loading rows={10} />
      ) : count === 0 ? (
        <EmptyState
          icon="search"
          title={`Nothing matches ${q}`}
          actions={<Button onClick={() => set("")}>Show all</Button>}
        >
          Components are for jobs, tools are for playbooks.
        </EmptyState>
      ) : (
        groups.map((group) => (
          <section key={group.name} aria-label={group.name}>
            <h2 className="reference-family">
              {sentence(group.name)}{" "}
              <span className="quiet">{group.entries[0]?.kind === "tool" ? "for playbooks" : "for jobs"}</span>
            </h2>
            <ul className="reference-list">
              {group.entries.map((entry) => (
                <li key={`${entry.kind} ${entry.name}`}>
                  <Entry entry={entry} />
                </li>
              ))}
            </ul>
          </section>
        ))
      )}
    </div>
  );
}

function Entry({ entry }: { entry: ReferenceEntry }) {
  return (
    <Link to="/reference/$kind/$name" params={{ kind: entry.kind, name: entry.name }} className="reference-entry">
      <span className="reference-head">
        <span className="mono reference-name">{entry.name}</span>
        {entry.error && <Badge tone="failed">cannot be loaded</Badge>}
      </span>
      <span className="quiet">
        <Prose text={entry.error ?? entry.summary} />
      </span>
    </Link>
  );
}
