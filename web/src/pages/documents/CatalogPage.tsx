import { useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useEffect, useMemo, useState } from "react";
import { useSession } from "@/api/session";
import { TextDiff } from "@/editor/YamlEditor";
import { Actions } from "@/shell/Actions";
import {
  Badge,
  Button,
  bytes,
  Confirm,
  EmptyState,
  ErrorState,
  Icon,
  Loading,
  Menu,
  type MenuItem,
  names,
  Select,
  Table,
  Td,
  Th,
  Time,
  toast,
  toastError,
} from "@/ui";
import { dropDraft, keepDraft, readDraft } from "./drafts";
import { useNarrow } from "./narrow";
import { PutDialog } from "./PutDialog";
import { type Asked, deleteDocument, type Filed, filedQuery, versionsQuery } from "./queries";
import { RunForm } from "./RunForm";
import { whyNot } from "./runnable";
import { useExamined } from "./useExamined";
import { Workbench } from "./Workbench";

const route = getRouteApi("/shell/documents/catalog/$");

export function CatalogPage() {
  const { _splat: path = "" } = route.useParams();
  const { version } = route.useSearch();
  const { data, error, refetch } = useQuery(filedQuery(path, version));
  if (error !== null)
    return <ErrorState error={error} title={`${path} cannot be opened`} onRetry={() => void refetch()} />;
  if (data === undefined) return <Loading rows={12} />;
  if (data.kind === "project") return <Project key={path} filed={data} />;
  return <Document key={`${path} ${data.version}`} filed={data} />;
}

function Document({ filed }: { filed: Filed }) {
  const { can, session } = useSession();
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const queries = useQueryClient();
  const isNarrow = useNarrow();
  const own = filed.text ?? "";
  const draftName = `catalog:${filed.path}@${filed.version}`;
  const [draft] = useState(() => readDraft(draftName));
  const [isEditing, setEditing] = useState(draft !== null && can("run"));
  const [text, setText] = useState(draft?.text ?? own);
  // What the editor begins with; what is typed into it afterwards is `text`.
  const [shown, setShown] = useState({ text, revision: 0 });
  const [dialog, setDialog] = useState<"run" | "put" | "delete" | null>(null);
  const versions = useQuery(versionsQuery(filed.path));
  const against = useQuery({ ...filedQuery(filed.path, search.against), enabled: search.against !== undefined });
  const isChanged = isEditing && text !== own;
  const address = `catalog:/${filed.path}@${filed.version}`;

  const document = useMemo<Asked>(
    () =>
      isChanged ? { text, file: address, sources: addressed(filed) } : { path: filed.path, version: filed.version },
    [isChanged, text, address, filed],
  );
  const examination = useExamined(text.trim() === "" ? null : document, isChanged ? text : address);
  const reason = isChanged ? "save the new version first" : whyNot(examination);
  // A document of a project comes with its project.
  const isInner = (versions.data?.documents[0]?.path ?? filed.path) !== filed.path;
  const go = (change: Partial<typeof search>) => void navigate({ search: (before) => ({ ...before, ...change }) });

  useEffect(() => {
    if (isChanged) keepDraft(draftName, { text, digest: filed.digest });
    else dropDraft(draftName);
  }, [isChanged, text, draftName, filed.digest]);

  const items: (MenuItem | "line")[] = [
    ...(can("run") && !isInner
      ? [
          {
            label: "Save a new version …",
            icon: "upload" as const,
            onSelect: () => setEditing(true),
            isDisabled: isEditing,
          },
        ]
      : []),
    ...(can("admin") && !isInner
      ? [
          {
            label: "Delete from the catalog …",
            icon: "trash" as const,
            isDangerous: true,
            onSelect: () => setDialog("delete"),
          },
        ]
      : []),
  ];
  const all = versions.data?.documents ?? [];
  return (
    <>
      <Actions>
        {reason !== null && can("run") && (
          <span id="run-reason" className="document-reason">
            Run: {reason}
          </span>
        )}
        <Select
          aria-label="Version"
          value={String(filed.version)}
          choices={
            all.length === 0
              ? [String(filed.version)]
              : all.map((one, at) => ({
                  value: String(one.version),
                  label: `Version ${one.version}${at === 0 ? ", newest" : ""}`,
                }))
          }
          onChange={(event) => go({ version: Number(event.target.value), against: undefined })}
        />
        {isEditing && (
          <>
            <Button
              onClick={() => {
                setEditing(false);
                setText(own);
                setShown(({ revision }) => ({ text: own, revision: revision + 1 }));
              }}
            >
              Discard the changes
            </Button>
            <Button look="primary" icon="upload" disabled={!isChanged} onClick={() => setDialog("put")}>
              Put as version {(all[0]?.version ?? filed.version) + 1}
            </Button>
          </>
        )}
        {can("run") && !isEditing && (
          <Button
            look="primary"
            icon="play"
            disabled={reason !== null}
            aria-describedby={reason === null ? undefined : "run-reason"}
            onClick={() => setDialog("run")}
          >
            Run
          </Button>
        )}
        {items.length > 0 && <Menu label="More" items={items} align="end" />}
      </Actions>
      <h1 className="visually-hidden">
        {filed.path}, version {filed.version}
      </h1>
      <Workbench
        file={address}
        label={`The text of ${filed.path}, version ${filed.version}`}
        text={shown.text}
        revision={shown.revision}
        isReadOnly={!isEditing}
        isLocal={session?.is_local ?? false}
        document={document}
        examination={examination}
        files={[]}
        line={search.line}
        view={search.view}
        onView={(view) => go({ view })}
        onChange={(now) => isEditing && setText(now)}
        notice={
          isEditing ? (
            <div className="document-notice" role="status">
              <Icon name="edit" size={14} />
              <span>A version never changes: what you write here becomes the next one.</span>
            </div>
          ) : search.against !== undefined ? (
            <div className="document-notice" role="status">
              <Icon name="compare" size={14} />
              <span>
                Version {search.against} and version {filed.version}
              </span>
              <Button size="small" onClick={() => go({ against: undefined })}>
                Show the text
              </Button>
            </div>
          ) : undefined
        }
        instead={
          search.against === undefined || isEditing ? undefined : against.data?.text == null ? (
            against.error === null ? (
              <Loading />
            ) : (
              <ErrorState error={against.error} />
            )
          ) : (
            <TextDiff
              before={against.data.text}
              after={own}
              beforeLabel={`Version ${search.against}`}
              afterLabel={`Version ${filed.version}`}
              isUnified={isNarrow}
            />
          )
        }
        more={[
          {
            id: "versions",
            label: "Versions",
            icon: "list",
            count: all.length,
            body: (
              <Versions all={all} shown={filed.version} against={search.against} error={versions.error} onGo={go} />
            ),
          },
        ]}
      />
      {dialog === "run" && examination.answer?.form && (
        <RunForm
          form={examination.answer.form}
          graph={examination.graph}
          document={async () => ({ path: filed.path, version: filed.version })}
          onClose={() => setDialog(null)}
        />
      )}
      {dialog === "put" && (
        <PutDialog
          text={text}
          sources={filed.sources ?? {}}
          path={filed.path}
          isFixed
          onClose={() => setDialog(null)}
          onPut={() => {
            dropDraft(draftName);
            setEditing(false);
          }}
        />
      )}
      <Confirm
        isOpen={dialog === "delete"}
        title={`Delete ${filed.path}?`}
        verb="Delete all versions"
        isDangerous
        onClose={() => setDialog(null)}
        onConfirm={() => {
          deleteDocument(filed.path).then(() => {
            void queries.invalidateQueries({ queryKey: ["documents"] });
            toast("done", `Deleted ${filed.path} from the catalog`);
            void navigate({ to: "/documents" });
          }, toastError);
        }}
      >
        <p>All its versions are deleted. Its runs stay; schedules and hooks that name it will fail.</p>
      </Confirm>
    </>
  );
}

/** The joblets that were put with a document, by the addresses they have in the catalog. */
function addressed(filed: Filed): Record<string, string> {
  const folder = filed.path.includes("/") ? `catalog:/${filed.path.slice(0, filed.path.lastIndexOf("/"))}` : "catalog:";
  return Object.fromEntries(Object.entries(filed.sources ?? {}).map(([name, text]) => [`${folder}/${name}`, text]));
}

function Versions(props: {
  all: readonly Filed[];
  shown: number;
  against: number | undefined;
  error: unknown;
  onGo: (change: { version?: number; against?: number }) => void;
}) {
  const { all, shown, against, onGo } = props;
  if (all.length === 0) return props.error === null ? <Loading rows={3} /> : <ErrorState error={props.error} />;
  return (
    <Table caption="Versions">
      <thead>
        <tr>
          <Th isNumeric>Version</Th>
          <Th>Saved</Th>
          <Th>By</Th>
          <Th>
            <span className="visually-hidden">Actions</span>
          </Th>
        </tr>
      </thead>
      <tbody>
        {all.map((one) => (
          <tr key={one.version} className={names(one.version === shown && "is-chosen")}>
            <Td isNumeric>{one.version}</Td>
            <Td>
              <Time value={one.created_at} />
            </Td>
            <Td>{one.created_by || <span className="quiet">–</span>}</Td>
            <Td>
              <span className="documents-row-actions">
                {one.version === shown ? (
                  <Badge tone="accent">shown</Badge>
                ) : (
                  <>
                    <Button size="small" onClick={() => onGo({ version: one.version, against: undefined })}>
                      Show
                    </Button>
                    <Button
                      size="small"
                      aria-pressed={against === one.version}
                      onClick={() => onGo({ against: against === one.version ? undefined : one.version })}
                    >
                      Compare
                    </Button>
                  </>
                )}
              </span>
            </Td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

interface ManifestFile {
  size: number;
  sha256: string;
  executable?: boolean;
}

function Project({ filed }: { filed: Filed }) {
  const navigate = route.useNavigate();
  const versions = useQuery(versionsQuery(filed.path));
  const files = useMemo(() => filesOf(filed.text ?? ""), [filed.text]);
  return (
    <div className="documents">
      <Actions>
        <Select
          aria-label="Version"
          value={String(filed.version)}
          choices={(versions.data?.documents ?? [filed]).map((one, at) => ({
            value: String(one.version),
            label: `Version ${one.version}${at === 0 ? ", newest" : ""}`,
          }))}
          onChange={(event) =>
            void navigate({ search: (before) => ({ ...before, version: Number(event.target.value) }) })
          }
        />
      </Actions>
      <h1>{filed.path}</h1>
      <p className="quiet">
        A project: a folder with documents and all they need. Version {filed.version}, put{" "}
        <Time value={filed.created_at} />
        {filed.created_by !== "" && ` by ${filed.created_by}`}.
      </p>
      {files.length === 0 ? (
        <EmptyState icon="folder" title="No files are known" />
      ) : (
        <Table caption="The files of the project">
          <thead>
            <tr>
              <Th>File</Th>
              <Th isNumeric>Size</Th>
            </tr>
          </thead>
          <tbody>
            {files.map(([name, file]) => (
              <tr key={name}>
                <Td className="mono">
                  {/\.ya?ml$/.test(name) ? (
                    <Link
                      to="/documents/catalog/$"
                      params={{ _splat: `${filed.path}/${name}` }}
                      search={{ version: filed.version }}
                    >
                      {name}
                    </Link>
                  ) : (
                    name
                  )}
                </Td>
                <Td isNumeric>{bytes(file.size)}</Td>
              </tr>
            ))}
          </tbody>
        </Table>
      )}
    </div>
  );
}

function filesOf(manifest: string): [string, ManifestFile][] {
  try {
    return Object.entries((JSON.parse(manifest) as { files?: Record<string, ManifestFile> }).files ?? {});
  } catch {
    return [];
  }
}
