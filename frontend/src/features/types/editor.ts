/** An editor of JSON whose lines can be marked. */

import { json } from "@codemirror/lang-json";
import { indentOnInput, indentUnit } from "@codemirror/language";
import { type EditorState, type Extension, StateEffect, StateField } from "@codemirror/state";
import { Decoration, type DecorationSet, EditorView, lineNumbers } from "@codemirror/view";

import { baseOf, type Named } from "../../parts/code/base";

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

export function extensionsOf(named: Named): Extension {
  return [baseOf(named), lineNumbers(), indentOnInput(), indentUnit.of("  "), json(), faultLine];
}
