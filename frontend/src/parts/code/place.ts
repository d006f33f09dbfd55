import { syntaxTree } from "@codemirror/language";
import type { EditorState } from "@codemirror/state";
import type { SyntaxNode } from "@lezer/common";

/**
 * The offset of what a path names in JSON, such as `.properties.total.anyOf[0]`, or of the nearest part around it that is
 * there. Names may hold dots.
 */
export function placeIn(state: EditorState, path: string): number {
  const top = syntaxTree(state).topNode.firstChild;
  return top === null ? 0 : within(state, top, path.replace(/\[(\d+)\]/g, ".$1").replace(/^\./, ""));
}

function within(state: EditorState, node: SyntaxNode, path: string): number {
  for (const [name, place, value] of partsOf(state, node)) {
    if (path === name) return place;
    if (path.startsWith(`${name}.`) && value !== null) {
      const inner = within(state, value, path.slice(name.length + 1));
      return inner === value.from ? place : inner;
    }
  }
  return node.from;
}

/** Name, offset and value of each member. */
function* partsOf(state: EditorState, node: SyntaxNode): Generator<[string, number, SyntaxNode | null]> {
  let index = 0;
  for (let child = node.firstChild; child !== null; child = child.nextSibling) {
    if (child.name === "Property") {
      const name = child.firstChild;
      if (name !== null) yield [nameOf(state.sliceDoc(name.from, name.to)), child.from, child.lastChild];
    } else if (node.name === "Array" && /^[A-Z]/.test(child.name)) {
      yield [String(index++), child.from, child];
    }
  }
}

function nameOf(text: string): string {
  try {
    return String(JSON.parse(text));
  } catch {
    return text;
  }
}
