/** The text that the run was made from, with the lines of the selected node; and what has changed since. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { answered, api } from "@/api/client";
import { useSession } from "@/api/session";
import { type EditorHandle, TextDiff, YamlEditor } from "@/editor/YamlEditor";
import { CopyButton, EmptyState, ErrorState, Icon, Loading, Select, Tabs } from "@/ui";
import { useRunPage } from "../context";
import { askDocument, type Pinned } from "./ask";
import { catalogPath, linesOf, nodeAt, shortNames } from "./document/where";
import { useWide } from "./wide";
import "./panels.css";

const NOTHING = "";
const NOW = "now";

export default function Document() {
  const { run } = useRunPage();
  const { data, error, refetch } = useQuery({
    queryKey: ["run", run, "document"],
    queryFn: ({ signal }) => askDocument(run, signal),
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (error !== null)
    return <ErrorState error={error} title="The document could not be loaded" onRetry={() => void refetch()} />;
  if (data === undefined) return <Loading rows={14} label="Loading the document" />;
  return <Files pinned={data} />;
}

function Files({ pinned }: { pinned: Pinned }) {
  const { line, node, graph } = useRunPage();
  const texts = useMemo(
    () =>
      new Map([
        [pinned.file, pinned.text],
        ...Object.entries(pinned.sources ?? {}).filter(([file]) => file !== pinned.file),
      ]),
    [pinned],
  );
  const files = useMemo(() => [...texts.keys()], [texts]);
  const own = graph?.nodes.find((one) => one.id === node);
  const [file, setFile] = useState(pinned.file);
  const [other, setOther] = useState(NOTHING);
  // What was asked for last decides which file is shown: a line, or a node.
  useEffect(() => {
    if (line !== null && texts.has(line.file)) setFile(line.file);
  }, [line, texts]);
  useEffect(() => {
    if (own !== undefined && texts.has(own.file)) setFile(own.file);
  }, [own, texts]);
  const text = texts.get(file) ?? "";
  const labels = shortNames(files);
  return (
    <div className="rp rp-doc">
      <div className="rp-bar">
        {files.length > 1 ? (
          <Tabs
            label="Files"
            tabs={files.map((id, at) => ({ id, label: labels[at] ?? id, icon: "file" as const }))}
            chosen={file}
            onChoose={setFile}
          />
        ) : (
          <span className="doc-file">
            <Icon name="file" size={14} /> <span title={file}>{labels[0]}</span>{" "}
            <span className="quiet">as it was run</span>
          </span>
        )}
        <span className="rp-bar-end">
          <Edit file={file} line={own?.file === file ? own.line : null} />
          <Versions file={file} chosen={other} onChoose={setOther} />
          <CopyButton text={text} label="Copy the text" />
        </span>
      </div>
      {other === NOTHING ? (
        <Text key={file} file={file} text={text} />
      ) : (
        <Difference file={file} text={text} other={other} />
      )}
    </div>
  );
}

function Text({ file, text }: { file: string; text: string }) {
  const page = useRunPage();
  const { graph, node, line } = page;
  const [editor, setEditor] = useState<EditorHandle | null>(null);
  const own = graph?.nodes.find((one) => one.id === node && one.file === file);
  const asked = line !== null && line.file === file ? line.line : null;
  /** The cursor is being moved by the page, not by somebody. */
  const isMoving = useRef(false);
  /** The node that was selected by moving the cursor: the text need not jump to it. */
  const chosen = useRef<string | null>(null);
  const marked = useMemo(() => {
    const lines = linesOf(own);
    if (asked === null) return lines;
    return lines !== null && asked >= lines[0] && asked <= lines[1] ? lines : ([asked, asked] as const);
  }, [own, asked]);
  const goal = asked ?? own?.line ?? null;

  useEffect(() => {
    if (editor === null || goal === null) return;
    const isThere = asked === null && own !== undefined && chosen.current === own.id;
    chosen.current = null;
    if (isThere) return;
    isMoving.current = true;
    editor.goTo(goal, null, { focus: false });
    isMoving.current = false;
  }, [editor, goal, asked, own]);

  const onCursor = useCallback(
    (at: number) => {
      if (isMoving.current) return;
      const found = nodeAt(graph, file, at);
      if (found === null || found.id === page.node) return;
      chosen.current = found.id;
      page.select(found.id);
    },
    [graph, file, page],
  );

  return (
    <div className="doc-text">
      <YamlEditor
        label={`${file}, as it was run`}
        text={text}
        isReadOnly
        marked={marked}
        onCursor={onCursor}
        handle={setEditor}
      />
    </div>
  );
}

/** Where the document can be changed: in its file on this machine, or as the next version in the catalog. */
function Edit({ file, line }: { file: string; line: number | null }) {
  const { session } = useSession();
  const { data: path } = useQuery({ ...fileQuery(file), enabled: session?.is_local === true });
  const kept = catalogPath(file);
  const looks = "ui-button ui-button-plain ui-button-small";
  const search = { line: line ?? undefined };
  if (path) {
    return (
      <Link to="/documents/file/$" params={{ _splat: path }} search={search} className={looks}>
        <Icon name="edit" />
        Edit this file
      </Link>
    );
  }
  return kept === null ? null : (
    <Link to="/documents/catalog/$" params={{ _splat: kept }} search={search} className={looks}>
      <Icon name="file" />
      In the catalog
    </Link>
  );
}

/** What to compare with: the file as it is on this machine, or another version in the catalog. */
function Versions({ file, chosen, onChoose }: { file: string; chosen: string; onChoose: (other: string) => void }) {
  const { session } = useSession();
  const isLocal = session?.is_local === true;
  const { data: path } = useQuery({ ...fileQuery(file), enabled: isLocal });
  const { data: versions } = useQuery(versionsQuery(file));
  const choices = [
    { value: NOTHING, label: "As it was run" },
    ...(path ? [{ value: NOW, label: "Compare with the file as it is now" }] : []),
    ...(versions ?? []).map((one) => ({ value: String(one.version), label: `Compare with version ${one.version}` })),
  ];
  if (choices.length === 1) return null;
  return (
    <Select
      aria-label="Compare with"
      choices={choices}
      value={chosen}
      onChange={(event) => onChoose(event.target.value)}
    />
  );
}

function fileQuery(file: string) {
  return {
    queryKey: ["files", "path", file],
    queryFn: async ({ signal }: { signal: AbortSignal }) => {
      const { files } = await answered(api.GET("/api/files", { signal }));
      return files.find((one) => one.file === file)?.path ?? null;
    },
  };
}

/** The catalog names documents by paths of its own; a file of a machine is not among them. */
function versionsQuery(file: string) {
  return {
    queryKey: ["versions", file],
    queryFn: async ({ signal }: { signal: AbortSignal }) => {
      const path = catalogPath(file) ?? "";
      const { documents } = await answered(api.GET("/api/versions/{path}", { params: { path: { path } }, signal }));
      return documents;
    },
    enabled: catalogPath(file) !== null,
    retry: false,
  };
}

function Difference({ file, text, other }: { file: string; text: string; other: string }) {
  const { data: path } = useQuery({ ...fileQuery(file), enabled: other === NOW });
  const { data, error, refetch } = useQuery({
    queryKey: ["document", file, other, path],
    queryFn: async ({ signal }) => {
      if (other === NOW) {
        const found = await answered(api.GET("/api/files/{path}", { params: { path: { path: path ?? "" } }, signal }));
        return found.text;
      }
      const found = await answered(
        api.GET("/api/documents/{path}", {
          params: {
            path: { path: catalogPath(file) ?? "" },
            query: { version: Number(other) },
          },
          signal,
        }),
      );
      return found.text ?? "";
    },
    enabled: other !== NOW || Boolean(path),
    staleTime: 0,
  });
  const [box, isWide] = useWide(760);
  const label = other === NOW ? "As it is now" : `Version ${other}`;
  return (
    <div className="doc-text" ref={box}>
      {error !== null ? (
        <ErrorState error={error} title="There is nothing to compare with" onRetry={() => void refetch()} />
      ) : data === undefined ? (
        <Loading rows={12} label="Loading the other text" />
      ) : data === text ? (
        <EmptyState icon="ok" title="No difference">
          {label === "As it is now" ? "The file is the same as when it was run." : `${label} is the same text.`}
        </EmptyState>
      ) : (
        <TextDiff before={text} after={data} beforeLabel="As it was run" afterLabel={label} isUnified={!isWide} />
      )}
    </div>
  );
}
