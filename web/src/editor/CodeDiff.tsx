/** Two texts and what differs between them: side by side, or one below the other where there is no room. */
import { yaml } from "@codemirror/lang-yaml";
import { MergeView, unifiedMergeView } from "@codemirror/merge";
import { EditorState, type Extension } from "@codemirror/state";
import { EditorView, lineNumbers } from "@codemirror/view";
import { useEffect, useRef } from "react";
import { theme } from "./theme";

export interface DiffProps {
  before: string;
  after: string;
  beforeLabel: string;
  afterLabel: string;
  isUnified?: boolean;
}

const collapse = { margin: 3, minSize: 6 };

export default function CodeDiff({ before, after, beforeLabel, afterLabel, isUnified = false }: DiffProps) {
  const place = useRef<HTMLDivElement>(null);

  useEffect(() => {
    const parent = place.current;
    if (parent === null) return;
    if (isUnified) {
      const view = new EditorView({
        parent,
        doc: after,
        extensions: [
          shared(afterLabel),
          unifiedMergeView({ original: before, mergeControls: false, collapseUnchanged: collapse }),
        ],
      });
      return () => view.destroy();
    }
    const view = new MergeView({
      parent,
      a: { doc: before, extensions: shared(beforeLabel) },
      b: { doc: after, extensions: shared(afterLabel) },
      collapseUnchanged: collapse,
      gutter: true,
    });
    return () => view.destroy();
  }, [before, after, beforeLabel, afterLabel, isUnified]);

  return (
    <div className="diff">
      {!isUnified && (
        <div className="diff-heads">
          <span className="ellipsis">{beforeLabel}</span>
          <span className="ellipsis">{afterLabel}</span>
        </div>
      )}
      <div ref={place} className="diff-body" />
    </div>
  );
}

function shared(label: string): Extension {
  return [
    lineNumbers(),
    yaml(),
    theme,
    EditorView.lineWrapping,
    EditorState.readOnly.of(true),
    EditorView.contentAttributes.of({ "aria-label": label, "aria-readonly": "true", tabindex: "0" }),
  ];
}
