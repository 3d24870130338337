/** CodeMirror with YAML, our problems and our completion. It is large: everybody takes it through `YamlEditor`, which loads it. */
import { closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { bracketMatching, foldGutter, foldKeymap, indentOnInput, indentUnit } from "@codemirror/language";
import { type Diagnostic, lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState, type Extension, StateEffect, StateField } from "@codemirror/state";
import {
  Decoration,
  type DecorationSet,
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSpecialChars,
  keymap,
  lineNumbers,
} from "@codemirror/view";
import { type Ref, useEffect, useImperativeHandle, useLayoutEffect, useRef } from "react";
import { type Assistant, assistance, lines } from "./assistance";
import { offsetIn, spanIn } from "./positions";
import { theme } from "./theme";

export interface EditorProblem {
  message: string;
  code?: string | null;
  severity?: string | null;
  line?: number | null;
  column?: number | null;
  end_column?: number | null;
  hint?: string | null;
}

export interface EditorHandle {
  focus(): void;
  /** Shows a place and puts the cursor there. */
  goTo(line: number, column?: number | null, options?: { focus?: boolean }): void;
  /** Replaces the whole text as one change, which can be undone. */
  replace(text: string): void;
}

export interface EditorProps {
  /** The text that the editor starts with; another one replaces what is there. */
  text: string;
  label: string;
  isReadOnly?: boolean;
  problems?: readonly EditorProblem[];
  /** Without one there is neither completion nor help on hovering. */
  assistant?: Assistant;
  /** The first and last line to mark. */
  marked?: readonly [number, number] | null;
  onChange?: (text: string) => void;
  /** The line of the cursor, when somebody moved it. */
  onCursor?: (line: number) => void;
  handle?: Ref<EditorHandle>;
}

/** What the search says: buttons of the page begin with a capital. */
const PHRASES = {
  next: "Next",
  previous: "Previous",
  all: "All",
  "match case": "Match case",
  regexp: "Regular expression",
  "by word": "Whole words",
  replace: "Replace",
  "replace all": "Replace all",
};

const setMarked = StateEffect.define<readonly [number, number] | null>();
const markedLine = Decoration.line({ class: "cm-marked" });

const markedField = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(marks, change) {
    let now = marks.map(change.changes);
    for (const effect of change.effects) {
      if (!effect.is(setMarked)) continue;
      const [first, last] = effect.value ?? [1, 0];
      const found = [];
      for (let line = Math.max(1, first); line <= Math.min(last, change.state.doc.lines); line += 1) {
        found.push(markedLine.range(change.state.doc.line(line).from));
      }
      now = Decoration.set(found);
    }
    return now;
  },
  provide: (field) => EditorView.decorations.from(field),
});

export default function CodeEditor(props: EditorProps) {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const latest = useRef(props);
  const known = useRef(props.text);
  const settings = useRef(new Compartment());
  const { text, isReadOnly = false, label, problems, marked, assistant, handle } = props;

  useEffect(() => {
    latest.current = props;
  });

  // The view is made once, before anybody gets the handle; what changes is handed to it below.
  useLayoutEffect(() => {
    if (place.current === null) return;
    const editor = new EditorView({
      parent: place.current,
      state: EditorState.create({
        doc: latest.current.text,
        extensions: [fixed(latest), settings.current.of(changing(latest.current))],
      }),
    });
    view.current = editor;
    known.current = latest.current.text;
    return () => {
      view.current = null;
      editor.destroy();
    };
  }, []);

  useEffect(() => {
    view.current?.dispatch({ effects: settings.current.reconfigure(changing({ isReadOnly, label, assistant })) });
  }, [isReadOnly, label, assistant]);

  useEffect(() => {
    const editor = view.current;
    if (editor === null || text === known.current || text === editor.state.doc.toString()) return;
    known.current = text;
    editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: text } });
  }, [text]);

  useEffect(() => {
    const editor = view.current;
    if (editor !== null)
      editor.dispatch(
        setDiagnostics(
          editor.state,
          (problems ?? []).map((one) => diagnostic(editor.state, one)),
        ),
      );
  }, [problems]);

  useEffect(() => {
    view.current?.dispatch({ effects: setMarked.of(marked ?? null) });
  }, [marked]);

  useImperativeHandle(
    handle,
    () => ({
      focus: () => view.current?.focus(),
      goTo: (line, column, options) => {
        const editor = view.current;
        if (editor === null) return;
        const at = editor.state.doc.line(Math.min(Math.max(line, 1), editor.state.doc.lines));
        const offset = column ? offsetIn(at.text, column) : at.text.length - at.text.trimStart().length;
        const anchor = Math.min(at.from + offset, at.to);
        editor.dispatch({ selection: { anchor }, effects: EditorView.scrollIntoView(anchor, { y: "center" }) });
        if (options?.focus !== false) editor.focus();
      },
      replace: (now) => {
        const editor = view.current;
        if (editor !== null) editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: now } });
      },
    }),
    [],
  );

  return <div ref={place} className="editor" />;
}

/** What stays the same as long as the editor lives. */
function fixed(latest: { current: EditorProps }): Extension {
  return [
    lineNumbers(),
    foldGutter({ openText: "▾", closedText: "▸" }),
    lintGutter(),
    highlightSpecialChars(),
    history(),
    drawSelection(),
    indentOnInput(),
    bracketMatching(),
    closeBrackets(),
    highlightActiveLine(),
    highlightActiveLineGutter(),
    highlightSelectionMatches(),
    search({ top: true }),
    EditorState.phrases.of(PHRASES),
    yaml(),
    indentUnit.of("  "),
    EditorState.tabSize.of(2),
    markedField,
    theme,
    keymap.of([
      ...closeBracketsKeymap,
      ...completionKeymap,
      ...searchKeymap,
      ...historyKeymap,
      ...foldKeymap,
      ...lintKeymap,
      indentWithTab,
      ...defaultKeymap.filter((one) => one.key !== "Mod-Enter"),
    ]),
    EditorView.updateListener.of((update) => {
      if (update.docChanged) latest.current.onChange?.(update.state.doc.toString());
      const isMove = update.selectionSet && !update.docChanged;
      if (isMove || (update.docChanged && update.selectionSet)) {
        latest.current.onCursor?.(update.state.doc.lineAt(update.state.selection.main.head).number);
      }
    }),
  ];
}

function changing({
  isReadOnly = false,
  label,
  assistant,
}: Pick<EditorProps, "isReadOnly" | "label" | "assistant">): Extension {
  return [
    EditorState.readOnly.of(isReadOnly),
    EditorView.contentAttributes.of({
      "aria-label": label,
      tabindex: "0",
      "aria-describedby": "editor-keys",
      ...(isReadOnly && { "aria-readonly": "true" }),
    }),
    assistant === undefined ? [] : assistance(assistant),
  ];
}

function diagnostic(state: EditorState, problem: EditorProblem): Diagnostic {
  const line = state.doc.line(Math.min(Math.max(problem.line ?? 1, 1), state.doc.lines));
  const [from, to] = spanIn(line.text, problem.column, problem.end_column);
  const severity =
    problem.severity === "warning" ? "warning" : problem.severity === "error" || !problem.severity ? "error" : "info";
  return {
    from: line.from + from,
    to: line.from + to,
    severity,
    source: problem.code ?? undefined,
    message: problem.message,
    renderMessage: () => {
      const box = lines(problem.message);
      if (problem.hint) {
        const hint = lines(problem.hint);
        hint.className = "quiet";
        box.append(hint);
      }
      return box;
    },
  };
}
