/** Names of attributes as the languages write them. */

import type { Language } from "./draft";

const WORD = /^[\p{L}_][\p{L}\p{N}_.-]*$/u;
const CONSTANT = /^(true|false|null|nan|infinity)$/i; // words that some languages read as constants
const COMPONENT = /^[\p{L}_][\p{L}\p{N}_]*(\.[\p{L}\p{N}_]+)*$/u;
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
