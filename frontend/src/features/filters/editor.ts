/** The filter editor's extensions, with a mark for the mistake. */

import { json } from "@codemirror/lang-json";
import { type EditorState, type Extension, StateEffect, StateField } from "@codemirror/state";
import { Decoration, type DecorationSet, EditorView, lineNumbers, placeholder } from "@codemirror/view";

import { baseOf } from "../../parts/code/base";
import { placeIn } from "../../parts/code/place";
import type { Mistake } from "./check";
import type { Language } from "./draft";
import { MODES } from "./modes";

export const setMistake = StateEffect.define<Mistake | undefined>();

const marks = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(before, transaction) {
    let now = before.map(transaction.changes);
    for (const effect of transaction.effects) {
      if (effect.is(setMistake)) now = effect.value === undefined ? Decoration.none : marksOf(transaction.state, effect.value);
    }
    return now;
  },
  provide: (field) => [
    EditorView.decorations.from(field),
    EditorView.contentAttributes.compute([field], (state) => ({ "aria-invalid": String(state.field(field).size > 0) })),
  ],
});

const look = EditorView.theme({
  ".cm-mistake": { textDecoration: "underline wavy var(--mantine-color-error) 1.5px", textUnderlineOffset: "3px" },
});

export function extensionsOf(language: Language["name"], label: string, describedBy: string, example: string): Extension {
  const mode = language in MODES ? MODES[language as keyof typeof MODES] : json();
  return [baseOf({ label, describedBy, readOnly: false }), lineNumbers(), placeholder(example), mode, marks, look];
}

/** Mark the line of the mistake and the text from its column on. */
function marksOf(state: EditorState, mistake: Mistake): DecorationSet {
  const at = offsetOf(state, mistake);
  if (at === undefined) return Decoration.none;
  const line = state.doc.lineAt(at);
  const from = at === line.to && at > line.from ? at - 1 : at;
  const word = /^"[^"]*"|^[^\s()"'`,|]+/.exec(state.sliceDoc(from, line.to));
  const to = Math.min(line.to, from + (word?.[0].length ?? 1));
  const found = [Decoration.line({ class: "cm-fault" }).range(line.from)];
  if (to > from) found.push(Decoration.mark({ class: "cm-mistake" }).range(from, to));
  return Decoration.set(found, true);
}

/** Columns count code points, not UTF-16 units. */
function offsetOf(state: EditorState, { line, column = 1, field }: Mistake): number | undefined {
  if (line !== undefined) {
    const found = state.doc.line(Math.min(Math.max(line, 1), state.doc.lines));
    const before = Array.from(found.text).slice(0, column - 1).join("").length;
    return found.from + before;
  }
  const path = field?.replace(/^filter/, "") ?? "";
  return path === "" ? undefined : placeIn(state, path);
}
