/** Completion and hover: what `suggest.ts` and the schema know, as CodeMirror shows it. Everything shown is text, never markup. */
import {
  autocompletion,
  type Completion,
  type CompletionContext,
  type CompletionResult,
  pickedCompletion,
  startCompletion,
} from "@codemirror/autocomplete";
import type { Extension } from "@codemirror/state";
import { type EditorView, hoverTooltip } from "@codemirror/view";
import { entryOnLine, outline, plain } from "./outline";
import { placeAt } from "./place";
import { descriptionAt } from "./schema";
import { componentsOf, type Known, kindOf, type Suggestion, suggest } from "./suggest";

/** What the editor asks for while somebody writes. */
export interface Assistant {
  /** All that is known for a kind of document; `types` are the components whose ports may be asked for. */
  known(kind: "playbook" | "job" | "joblet", types: readonly string[]): Promise<Known>;
}

const ICONS: Record<Suggestion["kind"], string> = {
  key: "property",
  value: "enum",
  type: "class",
  name: "variable",
  port: "interface",
};

export function assistance(assistant: Assistant): Extension {
  return [
    autocompletion({
      override: [(context) => completed(context, assistant)],
      activateOnTyping: true,
      maxRenderedOptions: 200,
      aboveCursor: false,
      icons: true,
    }),
    hoverTooltip((view, at) => hovered(view, at, assistant), { hoverTime: 350 }),
  ];
}

async function completed(context: CompletionContext, assistant: Assistant): Promise<CompletionResult | null> {
  const text = context.state.doc.toString();
  const place = placeAt(text, context.pos);
  if (place === null) return null;
  // An empty line says nothing about what its author is up to: there one has to ask (Ctrl-Space).
  const begun = place.word !== "" || /[:{[(>.,-]\s*$/.test(place.line);
  if (!context.explicit && !begun) return null;
  if (!context.explicit && place.role === "value" && place.word.includes(" ") && !place.line.includes("{{"))
    return null;
  const known = await assistant.known(kindOf(place.root), [
    ...new Set(componentsOf(place.root).map((one) => one.type)),
  ]);
  if (context.aborted) return null;
  const { skip, options } = suggest(place, known);
  if (options.length === 0) return null;
  const from = place.from + skip;
  const column = place.from - context.state.doc.lineAt(place.from).from;
  return {
    from,
    options: options.map((one) => completion(one, column)),
    validFor: /^[\w@()-]*$/,
  };
}

function completion(one: Suggestion, column: number): Completion {
  const insert = one.insert ?? one.label;
  return {
    label: one.label,
    type: ICONS[one.kind],
    detail: one.detail,
    info: one.info ? () => lines(one.info ?? "") : undefined,
    boost: one.weight,
    apply: (view: EditorView, picked: Completion, from: number, to: number) => {
      const raw = insert.replaceAll("\n", `\n${" ".repeat(column)}`);
      const at = raw.indexOf("¦");
      const text = raw.replace("¦", "");
      view.dispatch({
        changes: { from, to, insert: text },
        selection: { anchor: from + (at < 0 ? text.length : at) },
        annotations: pickedCompletion.of(picked),
        scrollIntoView: true,
        userEvent: "input.complete",
      });
      if (at >= 0) startCompletion(view);
    },
  };
}

async function hovered(view: EditorView, at: number, assistant: Assistant) {
  const text = view.state.doc.toString();
  const root = outline(text);
  const line = view.state.doc.lineAt(at);
  let entry = entryOnLine(root, line.number);
  // Of a flow collection the innermost entry that the pointer is on.
  for (let inner = entry; inner !== undefined; ) {
    entry = inner;
    inner = entry.children.find((child) => child.keyFrom <= at && at <= child.to) as typeof entry;
  }
  const isKey = at >= entry.keyFrom && at <= entry.keyTo;
  const last = entry.path.at(-1);
  const known = await assistant.known(kindOf(root), []);
  if (isKey && typeof last === "string" && known.schema !== null) {
    const found = descriptionAt(known.schema, entry.path, plain(root));
    if (found === null) return null;
    return tooltip(entry.keyFrom, entry.keyTo, found.description, found.type);
  }
  if ((last === "type" || last === "kind") && entry.kind === "scalar") {
    const summary = known.summaries.get(entry.text);
    return summary === undefined ? null : tooltip(entry.from, entry.to, summary, entry.text);
  }
  return null;
}

function tooltip(pos: number, end: number, said: string, type: string) {
  return {
    pos,
    end,
    above: true,
    create: () => {
      const dom = lines(said);
      dom.className = "cm-hover";
      if (type !== "") {
        const below = document.createElement("div");
        below.className = "cm-hover-type";
        below.textContent = type;
        dom.append(below);
      }
      return { dom };
    },
  };
}

/** A text whose backticks mark literals. */
export function lines(text: string): HTMLElement {
  const box = document.createElement("div");
  for (const part of text.split(/(`[^`\n]+`)/)) {
    if (part.length > 2 && part.startsWith("`")) {
      const code = document.createElement("code");
      code.className = "ui-literal";
      code.textContent = part.slice(1, -1);
      box.append(code);
    } else box.append(part);
  }
  return box;
}
