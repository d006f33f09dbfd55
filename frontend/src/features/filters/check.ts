import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery } from "@tanstack/react-query";

import { api, done } from "../../api/client";
import { Problem } from "../../api/problem";
import type { components } from "../../api/schema";
import { type FilterRequest, filterRequestOf, type FilterDraft, PAIRS } from "./draft";

export type Check = components["schemas"]["Check"];

/** A mistake and its position: line and column in a text, `field` in JSON, such as `filter.detail.state.0`. */
export interface Mistake {
  text: string;
  line?: number;
  column?: number;
  field?: string;
}

export interface Checked {
  said: Check | undefined; // of the current draft, or of an earlier one while typing
  fresh: boolean; // whether `said` is of the current draft
  mistake: Mistake | undefined;
  error: unknown; // of the check request itself
}

/** The client and streams of a new registration: the check then names its registration with an equal filter. */
export interface Whose {
  client: string;
  streams: string[];
}

const PAUSE_MS = 250; // without typing, before a check

/** Check a draft during input. A new check cancels the previous one. */
export function useCheck(zone: string, draft: FilterDraft, whose?: Whose): Checked {
  const [request, mistake] = readable(draft);
  const of = whose === undefined || whose.client === "" || whose.streams.length === 0 ? {} : whose;
  const now = request === undefined ? "" : JSON.stringify({ ...request, ...of });
  const [settled] = useDebouncedValue(now, PAUSE_MS);
  const check = useQuery({
    queryKey: ["check", zone, settled],
    queryFn: ({ signal }) =>
      done(api.POST("/v1/filters/check", { params: { query: { zone } }, body: JSON.parse(settled) as FilterRequest, bodySerializer: () => settled, signal })),
    enabled: settled !== "",
    placeholderData: keepPreviousData,
    staleTime: 30_000,
    retry: false,
  });
  if (mistake !== undefined || request === undefined) return { said: undefined, fresh: false, mistake, error: null };
  const said = check.data?.language === draft.language ? check.data : undefined;
  return { said, fresh: settled === now && !check.isPlaceholderData, mistake: mistakeOf(said?.mistake), error: check.error };
}

/** Return the mistake that a problem document names. */
export function mistakeIn(error: unknown): Mistake | undefined {
  if (!(error instanceof Problem)) return undefined;
  const { message: text, line, column, field } = error;
  if (line === undefined && field?.split(".")[0] !== "filter") return undefined;
  return { text, line, column, field };
}

function readable(draft: FilterDraft): [FilterRequest | undefined, Mistake | undefined] {
  if (draft.language !== PAIRS && draft.text.trim() === "") return [undefined, undefined];
  try {
    return [filterRequestOf(draft), undefined];
  } catch (error) {
    return [undefined, { text: `This is not JSON: ${error instanceof Error ? error.message : ""}`, field: "filter" }];
  }
}

function mistakeOf(problem: Check["mistake"] | undefined): Mistake | undefined {
  return problem == null ? undefined : asMistake(new Problem(400, problem));
}

function asMistake({ message, line, column, field }: Problem): Mistake {
  return { text: message, line, column, field };
}
