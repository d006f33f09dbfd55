/** The CodeMirror setup that all editors share. */

import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { bracketMatching, HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { EditorState, type Extension } from "@codemirror/state";
import { drawSelection, EditorView, keymap } from "@codemirror/view";
import { tags } from "@lezer/highlight";

import { nonce } from "../../nonce";

const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.variableName], color: "light-dark(#3747b0, #a5aff3)" },
  { tag: tags.number, color: "light-dark(#9a4a00, #f0b37e)" },
  { tag: [tags.bool, tags.null, tags.typeName], color: "light-dark(#8a2f86, #e3a3e0)" },
  { tag: [tags.keyword, tags.operator], fontWeight: "650" },
]);

const look = EditorView.theme({
  "&": { fontSize: "12.5px", backgroundColor: "transparent" },
  "&.cm-focused": { outline: "none" },
  ".cm-content": { fontFamily: "var(--mantine-font-family-monospace)", padding: "10px 0", caretColor: "var(--focus)" },
  ".cm-cursor": { borderLeftColor: "var(--focus)" },
  ".cm-placeholder": { color: "var(--mantine-color-placeholder)" },
  ".cm-scroller": { lineHeight: "20px", maxHeight: "560px" },
  ".cm-gutters": { backgroundColor: "transparent", border: "none", color: "var(--quiet)" },
  ".cm-fault": { backgroundColor: "light-dark(#fde3e3, #421d20)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "light-dark(#d3d9fb, #343d78)",
  },
});

export interface Named {
  label: string;
  describedBy: string; // id of the describing element
  readOnly: boolean;
}

/** The extensions of every editor; Tab moves the focus, as in other fields. */
export function baseOf({ label, describedBy, readOnly }: Named): Extension {
  return [
    EditorView.cspNonce.of(nonce()),
    history(),
    drawSelection(),
    bracketMatching(),
    syntaxHighlighting(colours),
    look,
    EditorView.lineWrapping,
    keymap.of([...defaultKeymap, ...historyKeymap]),
    EditorView.contentAttributes.of({ "aria-label": label, "aria-describedby": describedBy }),
    EditorState.readOnly.of(readOnly),
  ];
}
