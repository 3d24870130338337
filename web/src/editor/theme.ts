/** The look of the editor, from the tokens of the design: it follows the theme of the page by itself. */
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { EditorView } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const look = EditorView.theme({
  "&": { height: "100%", color: "var(--text)", backgroundColor: "var(--surface)", fontSize: "var(--size-3)" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55", overflow: "auto" },
  ".cm-content": { padding: "8px 0", caretColor: "var(--text)" },
  ".cm-line": { padding: "0 12px 0 6px" },
  ".cm-gutters": {
    color: "var(--text-3)",
    backgroundColor: "var(--surface)",
    border: "none",
    borderRight: "1px solid var(--line)",
  },
  ".cm-lineNumbers .cm-gutterElement": { padding: "0 6px 0 10px", minWidth: "36px" },
  ".cm-foldGutter .cm-gutterElement": { padding: "0 4px", cursor: "pointer" },
  ".cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--selected) 45%, transparent)" },
  ".cm-activeLineGutter": { color: "var(--text)", backgroundColor: "var(--selected)" },
  ".cm-cursor, .cm-dropCursor": { borderLeftColor: "var(--text)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground, .cm-content ::selection":
    {
      backgroundColor: "light-dark(#b9dfee, #1e5a70)",
    },
  ".cm-selectionMatch": { backgroundColor: "var(--selected)" },
  "&.cm-focused .cm-matchingBracket, .cm-matchingBracket": {
    backgroundColor: "var(--selected)",
    outline: "1px solid var(--accent)",
  },
  "&.cm-focused .cm-nonmatchingBracket": { backgroundColor: "var(--state-failed-ground)" },
  ".cm-foldPlaceholder": {
    color: "var(--text-2)",
    backgroundColor: "var(--inset)",
    border: "1px solid var(--line-strong)",
  },

  ".cm-marked": { backgroundColor: "var(--selected)" },
  ".cm-marked:first-of-type": { boxShadow: "inset 2px 0 var(--accent)" },

  ".cm-lintRange": { backgroundImage: "none", paddingBottom: "0" },
  ".cm-lintRange-error": { textDecoration: "underline wavy var(--state-failed) 1px", textUnderlineOffset: "3px" },
  ".cm-lintRange-warning": { textDecoration: "underline wavy var(--state-retrying) 1px", textUnderlineOffset: "3px" },
  ".cm-lintRange-info, .cm-lintRange-hint": {
    textDecoration: "underline dotted var(--text-3) 1px",
    textUnderlineOffset: "3px",
  },
  ".cm-lintRange-active": { backgroundColor: "var(--state-failed-ground)" },
  ".cm-gutter-lint": { width: "16px" },
  ".cm-gutter-lint .cm-gutterElement": { padding: "0 2px", display: "flex", alignItems: "center" },
  ".cm-lint-marker": {
    content: "none",
    width: "10px",
    height: "10px",
    borderRadius: "50%",
    background: "var(--text-3)",
  },
  ".cm-lint-marker-error": { content: "none", background: "var(--state-failed)", borderRadius: "3px" },
  ".cm-lint-marker-warning": {
    content: "none",
    background: "var(--state-retrying)",
    clipPath: "polygon(50% 0, 100% 100%, 0 100%)",
    borderRadius: "0",
  },

  ".cm-tooltip": {
    color: "var(--text)",
    backgroundColor: "var(--raised)",
    border: "1px solid var(--line-strong)",
    borderRadius: "var(--radius)",
    boxShadow: "var(--shadow-2)",
    maxWidth: "min(520px, 90vw)",
  },
  ".cm-tooltip-lint": { padding: "2px 0" },
  ".cm-diagnostic": { padding: "6px 10px", marginLeft: "0", fontFamily: "var(--font)", whiteSpace: "pre-wrap" },
  ".cm-diagnostic-error": { borderLeft: "3px solid var(--state-failed)" },
  ".cm-diagnostic-warning": { borderLeft: "3px solid var(--state-retrying)" },
  ".cm-diagnostic-info": { borderLeft: "3px solid var(--text-3)" },
  ".cm-diagnosticAction": {
    color: "var(--on-accent)",
    backgroundColor: "var(--accent-ground)",
    borderRadius: "var(--radius-small)",
  },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", maxHeight: "16em" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: "3px 8px" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": {
    color: "var(--on-accent)",
    backgroundColor: "var(--accent-ground)",
  },
  ".cm-tooltip-autocomplete ul li[aria-selected] .cm-completionDetail": { color: "var(--on-accent)" },
  ".cm-completionMatchedText": { textDecoration: "none", fontWeight: "700" },
  ".cm-completionDetail": { color: "var(--text-3)", fontStyle: "normal", marginLeft: "1.2em" },
  ".cm-completionIcon": { color: "var(--text-3)", opacity: "1", width: "1.2em" },
  ".cm-tooltip.cm-completionInfo": {
    padding: "8px 10px",
    fontFamily: "var(--font)",
    maxWidth: "340px",
    whiteSpace: "pre-wrap",
  },
  ".cm-hover": { padding: "8px 10px", fontFamily: "var(--font)", whiteSpace: "pre-wrap" },
  ".cm-hover-type": { color: "var(--text-3)", fontFamily: "var(--mono)", fontSize: "var(--size-2)", marginTop: "4px" },

  ".cm-panels": { color: "var(--text)", backgroundColor: "var(--inset)", fontFamily: "var(--font)" },
  ".cm-panels.cm-panels-top": { borderBottom: "1px solid var(--line)" },
  ".cm-panels.cm-panels-bottom": { borderTop: "1px solid var(--line)" },
  ".cm-panel.cm-search": {
    display: "flex",
    flexWrap: "wrap",
    gap: "6px",
    alignItems: "center",
    padding: "6px 32px 6px 8px",
    fontSize: "var(--size-2)",
  },
  ".cm-panel.cm-search :is(input, button, label)": { margin: "0", fontSize: "inherit" },
  ".cm-panel.cm-search label": { display: "inline-flex", gap: "4px", alignItems: "center" },
  ".cm-panel.cm-search input[type=checkbox]": { width: "14px", height: "14px" },
  // Replacing has a line of its own.
  ".cm-panel.cm-search br": { display: "block", flexBasis: "100%", content: "''" },
  ".cm-panel.cm-search [name=close]": { top: "6px", right: "8px", width: "24px", height: "24px", fontSize: "16px" },
  ".cm-textfield": {
    width: "150px",
    height: "26px",
    padding: "0 8px",
    color: "var(--text)",
    backgroundColor: "var(--surface)",
    border: "1px solid var(--line-control)",
    borderRadius: "var(--radius-small)",
  },
  ".cm-button": {
    height: "26px",
    padding: "0 10px",
    color: "var(--text)",
    background: "var(--surface)",
    border: "1px solid var(--line-strong)",
    borderRadius: "var(--radius-small)",
  },
  ".cm-searchMatch": { backgroundColor: "var(--state-retrying-ground)", outline: "1px solid var(--state-retrying)" },
  ".cm-searchMatch-selected": { backgroundColor: "var(--selected)" },

  ".cm-changedLine, .cm-insertedLine": { backgroundColor: "var(--state-ok-ground)" },
  ".cm-deletedLine, .cm-deletedChunk": { backgroundColor: "var(--state-failed-ground)" },
  "&.cm-merge-a .cm-changedLine": { backgroundColor: "var(--state-failed-ground)" },
  "&.cm-merge-b .cm-changedLine": { backgroundColor: "var(--state-ok-ground)" },
  "&.cm-merge-a .cm-changedText, .cm-deletedChunk .cm-deletedText": {
    background: "color-mix(in srgb, var(--state-failed) 25%, transparent)",
  },
  "&.cm-merge-b .cm-changedText": { background: "color-mix(in srgb, var(--state-ok) 25%, transparent)" },
  ".cm-changedText span, .cm-changedText, .cm-deletedText span": { color: "var(--text)" },
  ".cm-changeGutter": { width: "3px", paddingLeft: "1px" },
  "&.cm-merge-a .cm-changedLineGutter": { background: "var(--state-failed)" },
  "&.cm-merge-b .cm-changedLineGutter": { background: "var(--state-ok)" },
  ".cm-collapsedLines:before, .cm-collapsedLines:after": { content: '"…"' },
  ".cm-collapsedLines": {
    color: "var(--text-2)",
    background: "var(--inset)",
    padding: "4px 12px",
    fontFamily: "var(--font)",
  },
});

const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--syntax-key)" },
  { tag: [tags.string, tags.content, tags.attributeValue], color: "var(--syntax-string)" },
  { tag: [tags.number], color: "var(--syntax-number)" },
  { tag: [tags.bool, tags.null, tags.keyword, tags.atom, tags.labelName], color: "var(--syntax-atom)" },
  { tag: tags.comment, color: "var(--syntax-comment)", fontStyle: "italic" },
  { tag: [tags.punctuation, tags.separator, tags.bracket, tags.meta], color: "var(--text-3)" },
]);

export const theme = [look, syntaxHighlighting(colours)];
