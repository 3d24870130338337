import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useSession } from "@/api/session";
import { useCrumb } from "@/shell/Breadcrumbs";
import { Badge, Button, CopyButton, EmptyState, ErrorState, Loading, Prose, Table, Td, Th } from "@/ui";
import { keepDraft } from "../documents/drafts";
import { BEGUN } from "../documents/NewDocument";
import { type ReferencePage as Page, referencePageQuery, referenceQuery } from "../documents/queries";
import { YamlText } from "./YamlText";
import "./reference.css";

const route = getRouteApi("/shell/reference/$kind/$name");

export function ReferenceEntryPage() {
  const { kind, name } = route.useParams();
  const { data, error, refetch } = useQuery(referencePageQuery(kind, name));
  useCrumb(name);
  if (error !== null) {
    return <ErrorState error={error} title={`There is nothing about ${name}`} onRetry={() => void refetch()} />;
  }
  if (data === undefined) return <Loading rows={12} />;
  return (
    <div className="reference-page">
      <Article page={data} />
      <Siblings page={data} />
    </div>
  );
}

function Article({ page }: { page: Page }) {
  const { session, can } = useSession();
  const navigate = useNavigate();
  const word = page.kind === "tool" ? "Tool" : "Component";

  function open() {
    keepDraft(BEGUN, { text: page.example.endsWith("\n") ? page.example : `${page.example}\n`, digest: null });
    void navigate({ to: "/documents", search: { view: "new" } });
  }

  return (
    <article className="reference-article">
      <header>
        <h1 className="mono">{page.name}</h1>
        <Badge tone={page.kind === "tool" ? "accent" : "neutral"}>{word}</Badge>
        <Badge>{page.family}</Badge>
      </header>
      {page.error && (
        <EmptyState icon="error" title="This plug-in cannot be loaded">
          {page.error}
        </EmptyState>
      )}
      <Paragraphs text={page.text || page.summary} />
      {(page.inputs.length > 0 || page.outputs.length > 0) && (
        <Section title="Ports">
          <Table caption="Ports">
            <thead>
              <tr>
                <Th>Port</Th>
                <Th>Direction</Th>
                <Th>What it carries</Th>
              </tr>
            </thead>
            <tbody>
              {page.inputs.map((port) => (
                <PortRow key={`in ${port.name}`} port={port} way="in" />
              ))}
              {page.outputs.map((port) => (
                <PortRow key={`out ${port.name}`} port={port} way="out" />
              ))}
            </tbody>
          </Table>
        </Section>
      )}
      <Section title="Parameters">
        {page.params.length === 0 ? (
          <p className="quiet">It has no parameters.</p>
        ) : (
          <Table caption="Parameters">
            <thead>
              <tr>
                <Th>Name</Th>
                <Th>Type</Th>
                <Th>Default</Th>
                <Th>What it does</Th>
              </tr>
            </thead>
            <tbody>
              {page.params.map((param) => (
                <tr key={param.name}>
                  <Td className="mono reference-param">
                    <span className="reference-names">
                      {param.name}
                      {param.required && <Badge tone="retrying">required</Badge>}
                    </span>
                  </Td>
                  <Td className="reference-type mono">{param.type}</Td>
                  <Td className="mono quiet">{shown(param.default)}</Td>
                  <Td className="reference-text">
                    <Prose text={param.description} />
                  </Td>
                </tr>
              ))}
            </tbody>
          </Table>
        )}
      </Section>
      {page.example !== "" && (
        <Section
          title="Example"
          aside={
            <>
              <CopyButton text={page.example} label="Copy the example" />
              {session?.is_local && can("admin") && (
                <Button size="small" icon="plus" onClick={open}>
                  Open as a new document
                </Button>
              )}
            </>
          }
        >
          <YamlText text={page.example} label={`An example of ${page.name}`} />
        </Section>
      )}
      {page.output !== "" && (
        <Section title="Output" aside={<CopyButton text={page.output} label="Copy the output" />}>
          <YamlText text={page.output} label={`The output of ${page.name}`} />
        </Section>
      )}
    </article>
  );
}

function PortRow({ port, way }: { port: Page["inputs"][number]; way: "in" | "out" }) {
  return (
    <tr>
      <Td className="mono reference-param">
        <span className="reference-names">
          {port.name}
          {port.many && <Badge title="One or more, each with a name that begins like this">many</Badge>}
          {port.reject && <Badge tone="interrupted">rejects</Badge>}
          {way === "in" && port.required && <Badge tone="retrying">required</Badge>}
        </span>
      </Td>
      <Td>{way === "in" ? "input" : "output"}</Td>
      <Td className="reference-text">
        <Prose text={port.description} />
      </Td>
    </tr>
  );
}

function Section({ title, aside, children }: { title: string; aside?: ReactNode; children: ReactNode }) {
  return (
    <section className="reference-section">
      <div className="reference-section-head">
        <h2>{title}</h2>
        {aside}
      </div>
      {children}
    </section>
  );
}

function Paragraphs({ text }: { text: string }) {
  return (
    <div className="reference-prose">
      {text
        .split(/\n\s*\n/)
        .filter((part) => part.trim() !== "")
        .map((part, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the paragraphs of a text keep their places.
          <p key={at}>
            <Prose text={part.replace(/\s*\n\s*/g, " ").trim()} />
          </p>
        ))}
    </div>
  );
}

function shown(value: unknown): string {
  if (value === null || value === undefined) return "";
  return typeof value === "string" ? (value === "" ? '""' : value) : JSON.stringify(value);
}

/** What else is in the family. */
function Siblings({ page }: { page: Page }) {
  const { data } = useQuery(referenceQuery);
  const own = data?.entries.filter((entry) => entry.kind === page.kind && entry.family === page.family) ?? [];
  return (
    <nav className="reference-siblings" aria-label={`More in ${page.family}`}>
      <h2>{page.family}</h2>
      <ul>
        {own.map((entry) => (
          <li key={entry.name}>
            <Link
              to="/reference/$kind/$name"
              params={{ kind: entry.kind, name: entry.name }}
              aria-current={entry.name === page.name ? "page" : undefined}
              className="mono"
            >
              {entry.name}
            </Link>
          </li>
        ))}
      </ul>
      <Link to="/reference" activeOptions={{ exact: true }}>
        All components and tools
      </Link>
    </nav>
  );
}
