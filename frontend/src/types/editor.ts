/** How CodeMirror looks and behaves here. */

import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { json } from "@codemirror/lang-json";
import { bracketMatching, HighlightStyle, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { EditorState, type Extension, StateEffect, StateField } from "@codemirror/state";
import { Decoration, type DecorationSet, drawSelection, EditorView, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";

import { nonce } from "../nonce";

/** The offsets of what is wrong. */
export const setFaults = StateEffect.define<number[]>();

const faultLine = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(marks, transaction) {
    let now = marks.map(transaction.changes);
    for (const effect of transaction.effects) {
      if (effect.is(setFaults)) now = marksAt(transaction.state, effect.value);
    }
    return now;
  },
  provide: (field) => EditorView.decorations.from(field),
});

function marksAt(state: EditorState, places: readonly number[]): DecorationSet {
  const lines = new Set(places.map((at) => state.doc.lineAt(Math.min(at, state.doc.length)).from));
  const mark = Decoration.line({ class: "cm-fault" });
  return Decoration.set([...lines].map((from) => mark.range(from)), true);
}

const colours = HighlightStyle.define([
  { tag: tags.propertyName, color: "light-dark(#3747b0, #a5aff3)" },
  { tag: tags.number, color: "light-dark(#9a4a00, #f0b37e)" },
  { tag: [tags.bool, tags.null], color: "light-dark(#8a2f86, #e3a3e0)" },
]);

const look = EditorView.theme({
  "&": { fontSize: "12.5px", backgroundColor: "transparent" },
  "&.cm-focused": { outline: "none" },
  ".cm-content": { fontFamily: "var(--mantine-font-family-monospace)", padding: "10px 0", caretColor: "var(--focus)" },
  ".cm-cursor": { borderLeftColor: "var(--focus)" },
  ".cm-scroller": { lineHeight: "20px", maxHeight: "560px" },
  ".cm-gutters": { backgroundColor: "transparent", border: "none", color: "var(--quiet)" },
  ".cm-fault": { backgroundColor: "light-dark(#fde3e3, #421d20)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "light-dark(#d3d9fb, #343d78)",
  },
});

export function extensionsOf(readOnly: boolean, label: string, description: string): Extension {
  return [
    EditorView.cspNonce.of(nonce()),
    lineNumbers(),
    history(),
    drawSelection(),
    bracketMatching(),
    indentOnInput(),
    indentUnit.of("  "),
    json(),
    syntaxHighlighting(colours),
    faultLine,
    look,
    EditorView.lineWrapping,
    keymap.of([...defaultKeymap, ...historyKeymap]), // Tab leads on, as in every other field
    EditorView.contentAttributes.of({ "aria-label": label, "aria-describedby": description }),
    EditorState.readOnly.of(readOnly),
  ];
}
