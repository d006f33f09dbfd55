import { draftSearch } from "../filters/address";
import { filterRequestOf, draftOf, type FilterDraft, isEmpty, isReadable, PAIRS } from "../filters/draft";
import type { OneRun } from "../jobs/types";

interface Match {
  sequence: number;
  segment: string;
  appended_at: string;
  type: string;
  attributes: Record<string, unknown>;
}

/** The details of a back-test; `sample` is bounded, the files are complete. */
export interface BacktestDetails {
  matched_events: number;
  searched_events: number;
  searched_segments: number;
  skipped: { segment: string; fault: string }[];
  histogram: [number, number][]; // start of each bucket in microseconds since 1970, and its matches
  bucket_s: number;
  sample: Match[];
  from: string | null;
  until: string | null;
}

const NOTHING: BacktestDetails = { matched_events: 0, searched_events: 0, searched_segments: 0, skipped: [], histogram: [], bucket_s: 3_600, sample: [], from: null, until: null };

export function backtestOf({ details }: OneRun): BacktestDetails {
  return { ...NOTHING, ...details };
}

/** The parameters of a back-test. */
export interface BacktestParams {
  zone: string;
  stream: string;
  draft: FilterDraft;
  since?: Date;
  until?: Date;
}

export function backtestParams({ params }: OneRun): BacktestParams {
  const { zone, stream, since, until } = params;
  return {
    zone: typeof zone === "string" ? zone : "",
    stream: typeof stream === "string" ? stream : "",
    draft: draftIn(params),
    since: dateOf(since),
    until: dateOf(until),
  };
}

/** The form's query with the same parameters filled in. */
export function searchOf({ stream, draft, since, until }: BacktestParams): string {
  const search = draftSearch(draft, draft.language === PAIRS ? filterRequestOf(draft)?.attributes : undefined);
  search.set("stream", stream);
  if (since !== undefined) search.set("since", since.toISOString());
  if (until !== undefined) search.set("until", until.toISOString());
  return search.toString();
}

/** A draft as the job takes it: pairs are an object. Undefined while the draft is incomplete. */
export function filterOf(draft: FilterDraft): { language: string; filter: unknown } | undefined {
  const request = isEmpty(draft) || !isReadable(draft) ? undefined : filterRequestOf(draft);
  if (request === undefined) return undefined;
  const { language, filter, ...pairs } = request;
  return { language, filter: language === PAIRS ? pairs : filter };
}

function draftIn({ language = "predicate", filter }: Record<string, unknown>): FilterDraft {
  const fields = language === PAIRS ? (filter as object) : { filter };
  return draftOf({ language, ...fields } as Parameters<typeof draftOf>[0]);
}

function dateOf(time: unknown): Date | undefined {
  return typeof time === "string" ? new Date(time) : undefined;
}
