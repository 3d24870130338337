/** A document: its text with its problems, and beside it its graph and its lineage, which follow the cursor. */
import { type ReactNode, useCallback, useMemo, useRef, useState } from "react";
import { type EditorHandle, YamlEditor } from "@/editor/YamlEditor";
import { Icon, names, Splitter, type Tab, Tabs } from "@/ui";
import { useAssistant } from "./assistant";
import { lineOf, nodeAt, sorted } from "./follow";
import { GraphPane } from "./GraphPane";
import { LineagePane } from "./LineagePane";
import { useNarrow } from "./narrow";
import { ProblemList, summary } from "./ProblemList";
import type { Asked, FileEntry } from "./queries";
import type { Examination } from "./useExamined";
import "./documents.css";

interface Props {
  /** The name of the file, as the server gives it back. */
  file: string;
  label: string;
  /** What the editor begins with. It is not handed back what was typed: another text replaces the one that is there. */
  text: string;
  /** Another one begins with `text` again. */
  revision?: number;
  isReadOnly: boolean;
  isLocal: boolean;
  document: Asked;
  examination: Examination;
  files: readonly FileEntry[];
  /** The line to begin at. */
  line?: number;
  view: string | undefined;
  onView: (view: string | undefined) => void;
  onChange?: (text: string) => void;
  /** Above the text. */
  notice?: ReactNode;
  /** Instead of the text. */
  instead?: ReactNode;
  /** More tabs beside the graph. */
  more?: readonly (Tab & { body: ReactNode })[];
}

export function Workbench(props: Props) {
  const { file, text, isReadOnly, document, examination, view, onView } = props;
  const editor = useRef<EditorHandle>(null);
  const isSelecting = useRef(false);
  const assistant = useAssistant(props.isLocal);
  const isNarrow = useNarrow();
  const [node, setNode] = useState<string | null>(null);
  const [marked, setMarked] = useState<readonly [number, number] | null>(null);
  const { answer, graph, isStale } = examination;
  const found = useMemo(() => sorted(answer?.problems ?? [], file), [answer, file]);

  const onCursor = useCallback(
    (line: number) => {
      if (isSelecting.current || graph === null) return;
      setMarked(null);
      setNode(nodeAt(graph, file, line)?.id ?? null);
    },
    [graph, file],
  );

  const onSelect = useCallback(
    (id: string | null) => {
      setNode(id);
      if (id === null) {
        setMarked(null);
        return;
      }
      const line = graph === null ? undefined : lineOf(graph, file, id);
      if (line === undefined) return;
      const own = graph?.nodes.find((one) => one.id === id);
      isSelecting.current = true;
      editor.current?.goTo(line, null, { focus: false });
      isSelecting.current = false;
      setMarked(own?.line === line ? [line, own.end_line ?? line] : [line, line]);
    },
    [graph, file],
  );

  const { line: firstLine } = props;
  const isShown = useRef(false);
  const handle = useCallback(
    (now: EditorHandle | null) => {
      editor.current = now;
      if (now === null || isShown.current || firstLine === undefined) return;
      isShown.current = true;
      now.goTo(firstLine);
    },
    [firstLine],
  );

  const more = props.more ?? [];
  const isJob = (answer?.graph ?? graph)?.kind === "job";
  const tabs: Tab[] = [
    { id: "graph", label: "Graph", icon: "graph" },
    ...(isJob ? [{ id: "lineage", label: "Lineage", icon: "data" } as const] : []),
    ...more,
  ];
  const chosen = tabs.find((tab) => tab.id === view)?.id ?? "graph";

  // What the problems are is said when it has changed, not on every key.
  const words = summary(found, examination);
  const isWrong = found.errors > 0;
  const count = found.here.length + found.elsewhere.length;
  const left = (
    <div className="document-text">
      {props.notice}
      <div className="document-editor">
        {props.instead ?? (
          <YamlEditor
            key={props.revision ?? 0}
            label={props.label}
            text={text}
            isReadOnly={isReadOnly}
            problems={found.here}
            assistant={isReadOnly ? undefined : assistant}
            marked={marked}
            onChange={props.onChange}
            onCursor={onCursor}
            handle={handle}
          />
        )}
      </div>
      <section className="document-problems" aria-label="Problems">
        <header className="document-problems-head">
          <h2>Problems</h2>
          {count === 0 && !isWrong && examination.answer !== null && <Icon name="check" size={14} />}
          <span
            role="status"
            className={names("document-summary", isWrong ? "is-wrong" : found.warnings > 0 && "is-doubtful")}
          >
            {words}
          </span>
          {examination.isPending && examination.answer !== null && <Icon name="running" size={12} label="Checking" />}
          {examination.error !== null && examination.answer !== null && (
            <span className="is-wrong">cannot be checked right now</span>
          )}
        </header>
        {(count > 0 || (examination.error !== null && examination.answer === null)) && (
          <ProblemList
            found={found}
            examination={examination}
            files={props.files}
            onGo={(line, column) => editor.current?.goTo(line, column)}
          />
        )}
      </section>
    </div>
  );
  const right = (
    <Tabs
      label="Views of the document"
      tabs={tabs}
      chosen={chosen}
      onChoose={(id) => onView(id === "graph" ? undefined : id)}
      isTall
    >
      {chosen === "graph" && <GraphPane id={file} examination={examination} node={node} onSelect={onSelect} />}
      {chosen === "lineage" && (
        <LineagePane
          document={document}
          digest={`${graph?.digest ?? ""} ${file}`}
          isStale={isStale}
          node={node}
          onSelect={onSelect}
        />
      )}
      {more.find((tab) => tab.id === chosen)?.body}
    </Tabs>
  );
  return (
    <div className="document-page">
      <Splitter
        id="document"
        label="Text and graph"
        direction={isNarrow ? "column" : "row"}
        initial={0.56}
        min={0.2}
        max={0.85}
      >
        {left}
        {right}
      </Splitter>
    </div>
  );
}
