import { queryOptions } from "@tanstack/react-query";

import { api, done } from "../api/client";
import { attributesOf, complaint, type Pair, pairsOf } from "../pairs/pairs";
import type { Registration, RegistrationChange } from "./registrations";

/** A filter as it stands in a form; the fields of pairs and the text of another language are both kept. */
export interface FilterDraft {
  language: Registration["language"];
  text: string;
  domain: string;
  type: string;
  application: string;
  pairs: Pair[];
}

export type AskedFilter = Pick<RegistrationChange, "language" | "filter" | "domain" | "type" | "application" | "attributes">;

export const PAIRS: Registration["language"] = "pairs";

export const languages = queryOptions({
  queryKey: ["languages"],
  queryFn: async () => (await done(api.GET("/v1/languages"))).items,
  staleTime: Infinity,
});

export function draftOf(registration: Registration | undefined): FilterDraft {
  const { language = PAIRS, filter = null, domain, type, application, attributes = {} } = registration ?? {};
  return {
    language,
    text: filter === null ? "" : typeof filter === "string" ? filter : JSON.stringify(filter, null, 2),
    domain: domain ?? "",
    type: type ?? "",
    application: application ?? "",
    pairs: pairsOf(attributes),
  };
}

/** What is asked for; undefined while a pair is incomplete. Throws a SyntaxError for JSON that is none. */
export function askedOf(draft: FilterDraft, json: boolean): AskedFilter | undefined {
  if (draft.language !== PAIRS) {
    return { language: draft.language, filter: json ? (JSON.parse(draft.text) as Record<string, unknown>) : draft.text };
  }
  if (draft.pairs.some((pair) => complaint(pair) !== undefined)) return undefined;
  return {
    language: PAIRS,
    domain: draft.domain || null,
    type: draft.type || null,
    application: draft.application || null,
    attributes: attributesOf(draft.pairs),
  };
}
