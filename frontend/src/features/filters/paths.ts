/** Names of attributes as the languages write them. */

import type { Language } from "./draft";

const WORD = /^[\p{L}_][\p{L}\p{N}_.-]*$/u;
const CONSTANT = /^(true|false|null|nan|infinity)$/i; // words that some languages read as constants
const COMPONENT = /^[\p{L}_][\p{L}\p{N}_]*(\.[\p{L}\p{N}_]+)*$/u;
const CEL_PATH = /^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$/;
const CEL_WORD =
  /^(in|true|false|null|as|break|const|continue|else|for|function|if|import|let|loop|package|namespace|return|var|void|while|event|env|attributes)(\.|$)/;
const CESQL_WORD = /^(\d+|and|or|xor|not|like|in|exists|true|false)$/i;

/** Return the name in the syntax of the language; undefined if the language cannot express it. */
export function written(language: Language["name"], path: string): string | undefined {
  switch (language) {
    case "predicate":
      return prefixed(path);
    case "propositional":
      return path.includes(".") ? undefined : prefixed(path);
    case "ready":
      return COMPONENT.test(path) ? `$${path}` : `$'${path.replace(/['\\]/g, "\\$&")}'`;
    case "cel":
      return CEL_PATH.test(path) && !CEL_WORD.test(path) ? path : `attributes[${JSON.stringify(path)}]`;
    case "cesql":
      return /^[A-Za-z\d]+$/.test(path) && !CESQL_WORD.test(path) ? path : undefined;
    default:
      return undefined;
  }
}

function prefixed(path: string): string {
  const plain = WORD.test(path) && !path.startsWith("env.") && !CONSTANT.test(path);
  return plain ? path : `\`${JSON.stringify(path).slice(1, -1).replaceAll('\\"', '"').replaceAll("`", "\\`")}\``;
}
