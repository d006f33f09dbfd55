/** Names of attributes as the languages write them. */

import type { Language } from "./draft";

const WORD = /^[\p{L}_][\p{L}\p{N}_.-]*$/u;
const CONSTANT = /^(true|false|null|nan|infinity)$/i; // or what may be meant for one
const COMPONENT = /^[\p{L}_][\p{L}\p{N}_]*(\.[\p{L}\p{N}_]+)*$/u;

/** Undefined where such a name cannot be put into a text. */
export function written(language: Language["name"], path: string): string | undefined {
  switch (language) {
    case "predicate":
      return prefixed(path);
    case "propositional":
      return path.includes(".") ? undefined : prefixed(path);
    case "ready":
      return COMPONENT.test(path) ? `$${path}` : `$'${path.replace(/['\\]/g, "\\$&")}'`;
    default:
      return undefined;
  }
}

function prefixed(path: string): string {
  const plain = WORD.test(path) && !path.startsWith("env.") && !CONSTANT.test(path);
  return plain ? path : `\`${JSON.stringify(path).slice(1, -1).replaceAll('\\"', '"').replaceAll("`", "\\`")}\``;
}
