import { queryOptions } from "@tanstack/react-query";

import { api, done } from "../../api/client";
import { parseExactly } from "../../api/exact";
import type { components } from "../../api/schema";
import { type Attributes, attributesOf, complaint, type Pair, pairsOf } from "../../parts/pairs/pairs";

export type Language = components["schemas"]["Language"];
type Filter = components["schemas"]["CheckRequest"]["filter"];

/** A filter in a form; it holds both the fields of pairs and the text of another language. */
export interface FilterDraft {
  language: Language["name"];
  text: string;
  domain: string;
  type: string;
  application: string;
  pairs: Pair[];
}

/** A filter as the API accepts it. */
export interface FilterRequest {
  language: Language["name"];
  filter?: Filter;
  domain?: string | null;
  type?: string | null;
  application?: string | null;
  attributes?: Attributes;
}

/** A filter, or a part of one, as the API returns it. */
interface FilterResponse {
  language?: Language["name"];
  filter?: Filter;
  domain?: string | null;
  type?: string | null;
  application?: string | null;
  attributes?: Attributes;
}

export const PAIRS: Language["name"] = "pairs";
const JSON_TEXTS: readonly Language["name"][] = ["eventbridge"];

export const languages = queryOptions({
  queryKey: ["languages"],
  queryFn: async () => (await done(api.GET("/v1/languages"))).items,
  staleTime: Infinity,
});

/** Return whether the draft has no condition yet. */
export function isEmpty({ language, text, domain, type, application, pairs }: FilterDraft): boolean {
  return language === PAIRS ? domain + type + application === "" && pairs.length === 0 : text.trim() === "";
}

/** Return whether filters of the language are JSON. */
export function isJson(language: Language["name"]): boolean {
  return JSON_TEXTS.includes(language);
}

export function draftOf({ language = PAIRS, filter = null, domain, type, application, attributes = {} }: FilterResponse = {}): FilterDraft {
  return {
    language,
    text: filter === null ? "" : typeof filter === "string" ? filter : JSON.stringify(filter, null, 2),
    domain: domain ?? "",
    type: type ?? "",
    application: application ?? "",
    pairs: pairsOf(attributes),
  };
}

/** Return whether a JSON draft is well-formed or empty. */
export function isReadable(draft: FilterDraft): boolean {
  if (isEmpty(draft)) return true;
  try {
    filterRequestOf(draft);
    return true;
  } catch {
    return false;
  }
}

/** Return the filter request; undefined while a pair is incomplete. Throws a SyntaxError for malformed JSON. */
export function filterRequestOf(draft: FilterDraft): FilterRequest | undefined {
  const { language, text } = draft;
  if (language !== PAIRS) return { language, filter: isJson(language) ? (parseExactly(text) as Filter) : text };
  if (draft.pairs.some((pair) => complaint(pair) !== undefined)) return undefined;
  return {
    language: PAIRS,
    domain: draft.domain || null,
    type: draft.type || null,
    application: draft.application || null,
    attributes: attributesOf(draft.pairs),
  };
}
