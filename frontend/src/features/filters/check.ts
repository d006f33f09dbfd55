import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery } from "@tanstack/react-query";

import { api, done } from "../../api/client";
import { Problem } from "../../api/problem";
import type { components } from "../../api/schema";
import { type FilterRequest, filterRequestOf, type FilterDraft, PAIRS } from "./draft";

export type Check = components["schemas"]["Check"];

/** What is wrong, and where: in a text by line and column, in JSON by `field`, such as `filter.detail.state.0`. */
export interface Mistake {
  text: string;
  line?: number;
  column?: number;
  field?: string;
}

export interface Checked {
  said: Check | undefined; // of the draft as it is, or as it was a moment ago ...
  fresh: boolean; // ... which this tells
  mistake: Mistake | undefined;
  error: unknown; // why it could not be checked
}

/** The client and streams of a new registration: the check then names its registration with an equal filter. */
export interface Whose {
  client: string;
  streams: string[];
}

const PAUSE_MS = 250; // in typing

/** What the hub says of a draft while it is written. An earlier question is given up when another comes. */
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

/** The mistake that an error of a whole request names. */
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
