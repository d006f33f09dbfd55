/** A draft in the address of a page, so that it can be bookmarked and shared. */

import type { Faults } from "../../api/address";
import { attributesAt } from "../../parts/pairs/address";
import { type FilterDraft, draftOf, type Language, PAIRS } from "./draft";

const LANGUAGES: Record<Language["name"], true> = { pairs: true, propositional: true, predicate: true, ready: true, cel: true, cesql: true, eventbridge: true };

export function draftAt(search: URLSearchParams, faults: Faults): FilterDraft {
  const language = search.get("language") ?? PAIRS;
  if (!isLanguage(language)) {
    faults.language = `None of ${Object.keys(LANGUAGES).join(", ")}.`;
    return draftOf();
  }
  const { domain, type, application } = Object.fromEntries(search);
  const draft = draftOf({ language, domain, type, application, attributes: attributesAt(search, faults) });
  return { ...draft, text: search.get("filter") ?? "" };
}

/** Write a complete draft to the address. */
export function draftSearch(draft: FilterDraft, attributes: Record<string, unknown> = {}): URLSearchParams {
  const search = new URLSearchParams({ language: draft.language });
  if (draft.language !== PAIRS) {
    search.set("filter", draft.text);
    return search;
  }
  for (const name of ["domain", "type", "application"] as const) if (draft[name] !== "") search.set(name, draft[name]);
  if (Object.keys(attributes).length > 0) search.set("attributes", JSON.stringify(attributes));
  return search;
}

function isLanguage(text: string): text is Language["name"] {
  return Object.hasOwn(LANGUAGES, text);
}
