/** Tokenizers for syntax colours of the text languages; the hub checks the syntax. */

import { StreamLanguage, type StringStream } from "@codemirror/language";

interface Prefix {
  opened: boolean; // after an opening parenthesis: the next word is an operator
}

/** Of `(and (= type 'error) (> size 9))`; in propositional filters only `and` and `or` are words. */
function prefixMode(words: RegExp): StreamLanguage<Prefix> {
  return StreamLanguage.define<Prefix>({
    startState: () => ({ opened: false }),
    token: (stream, state) => {
      if (stream.eatSpace()) return null;
      if (stream.eat("(")) {
        state.opened = true;
        return "bracket";
      }
      const opened = state.opened;
      state.opened = false;
      if (stream.eat(")")) return "bracket";
      return atom(stream) ?? (opened && stream.match(words) ? "keyword" : nameIn(stream));
    },
  });
}

function atom(stream: StringStream): string | null {
  if (stream.match(/^"(?:[^"\\]|\\.)*"?/) || stream.match(/^'[^\s()"'`]*/)) return "string";
  if (stream.match(/^`(?:[^`\\]|\\.)*`?/)) return "variableName";
  if (stream.match(/^-?\d[\d.]*(?:[eE][+-]?\d+)?(?=[\s()]|$)/)) return "number";
  return stream.match(/^(?:true|false|null)(?=[\s()]|$)/) ? "bool" : null;
}

function nameIn(stream: StringStream): string {
  if (!stream.match(/^[^\s()"'`]+/)) stream.next();
  return "variableName";
}

const predicate = prefixMode(/^[^\s()"'`]+/);
const propositional = prefixMode(/^(?:and|or)(?=[\s()]|$)/);

/** Of `Ev1: MyAlarm | $Priority > 5`. */
const ready = StreamLanguage.define<{ types: boolean }>({
  startState: () => ({ types: true }),
  token: (stream, state) => {
    if (stream.eatSpace()) return null;
    if (stream.eat("|")) {
      state.types = false;
      return "keyword";
    }
    if (stream.match(/^'(?:[^'\\]|\\.)*'?/)) return "string";
    if (state.types) return typeIn(stream);
    if (stream.match(/^\$(?:'(?:[^'\\]|\\.)*'?|[\w.]*)/)) return "variableName";
    if (stream.match(/^\d[\d.]*(?:[eE][+-]?\d+)?/)) return "number";
    if (stream.match(/^(?:and|or|not|in|exist)\b/)) return "keyword";
    if (stream.match(/^(?:TRUE|FALSE)\b/)) return "bool";
    stream.next();
    return null;
  },
});

function typeIn(stream: StringStream): string | null {
  if (stream.match(/^[\w.*-]+(?:::[\w.*-]+)?(?![\w.*-]|\s*:)/)) return "typeName";
  if (!stream.match(/^\w+/)) stream.next();
  return null;
}

/** Of `type LIKE 'order.%' AND total > 50`. */
const cesql = StreamLanguage.define({
  startState: () => null,
  token: (stream) => {
    if (stream.eatSpace()) return null;
    if (stream.match(/^'(?:[^'\\]|\\.)*'?/) || stream.match(/^"(?:[^"\\]|\\.)*"?/)) return "string";
    if (stream.match(/^\d+(?![A-Za-z\d])/)) return "number";
    if (stream.match(/^(?:and|or|xor|not|like|in|exists)(?![A-Za-z\d])/i)) return "keyword";
    if (stream.match(/^(?:true|false)(?![A-Za-z\d])/i)) return "bool";
    if (stream.match(/^[A-Za-z_]+(?=\s*\()/)) return "keyword";
    if (stream.match(/^[A-Za-z\d]+/)) return "variableName";
    stream.next();
    return null;
  },
});

/** Of `total > 50 && country == "NO"`. */
const cel = StreamLanguage.define({
  startState: () => null,
  token: (stream) => {
    if (stream.eatSpace()) return null;
    if (stream.match("//")) {
      stream.skipToEnd();
      return "comment";
    }
    if (stream.match(/^[rR]?(?:'(?:[^'\\]|\\.)*'?|"(?:[^"\\]|\\.)*"?)/)) return "string";
    if (stream.match(/^\d[\w.]*/)) return "number";
    if (stream.match(/^(?:true|false|null)\b/)) return "bool";
    if (stream.match(/^in\b/) || stream.match(/^[A-Za-z_]\w*(?=\()/)) return "keyword";
    if (stream.match(/^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*(?![\w(]))*/)) return "variableName";
    stream.next();
    return null;
  },
});

export const MODES = { predicate, propositional, ready, cel, cesql } as const;
