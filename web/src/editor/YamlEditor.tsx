/** The editor and the view of differences, each loaded when it is first shown. */
import { lazy, Suspense } from "react";
import { chunk } from "@/chunks";
import { Loading } from "@/ui";
import type { DiffProps } from "./CodeDiff";
import type { EditorProps } from "./CodeEditor";
import "./editor.css";

export type { DiffProps } from "./CodeDiff";
export type { EditorHandle, EditorProblem, EditorProps } from "./CodeEditor";

const CodeEditor = lazy(chunk(() => import("./CodeEditor")));
const CodeDiff = lazy(chunk(() => import("./CodeDiff")));

/**
 * A YAML text with problems, completion and help. Tab indents, as in every editor of code: Escape and then Tab leaves it.
 *
 *     <YamlEditor label="hello.yaml" text={text} onChange={setText} problems={problems} assistant={assistant} />
 */
export function YamlEditor(props: EditorProps) {
  return (
    <div className="editor-frame">
      <span id="editor-keys" className="visually-hidden">
        Press Escape and then Tab to leave the editor, and Control with Space for completion.
      </span>
      <Suspense fallback={<Loading label="Loading the editor" />}>
        <CodeEditor {...props} />
      </Suspense>
    </div>
  );
}

/** Two texts and what differs between them. */
export function TextDiff(props: DiffProps) {
  return (
    <div className="editor-frame">
      <Suspense fallback={<Loading label="Loading the difference" />}>
        <CodeDiff {...props} />
      </Suspense>
    </div>
  );
}
