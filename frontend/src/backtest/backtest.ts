import { draftSearch } from "../filters/address";
import { askedOf, draftOf, type FilterDraft, isEmpty, isReadable, PAIRS } from "../filters/draft";
import type { OneRun } from "../jobs/types";

interface Match {
  sequence: number;
  segment: string;
  appended_at: string;
  type: string;
  attributes: Record<string, unknown>;
}

/** The details of a back-test; `shown` is bounded, its files have all. */
export interface BacktestDetails {
  count: number;
  searched_events: number;
  searched_segments: number;
  skipped: { segment: string; fault: string }[];
  hours: [number, number][]; // microseconds since 1970 where each span begins, and how many matched in it
  buckets_s: number;
  shown: Match[];
  from: string | null;
  until: string | null;
}

const NOTHING: BacktestDetails = { count: 0, searched_events: 0, searched_segments: 0, skipped: [], hours: [], buckets_s: 3_600, shown: [], from: null, until: null };

export function backtestOf({ details }: OneRun): BacktestDetails {
  return { ...NOTHING, ...details };
}

/** What a back-test was asked for. */
export interface AskedFor {
  zone: string;
  stream: string;
  draft: FilterDraft;
  since?: Date;
  until?: Date;
}

export function askedFor({ params }: OneRun): AskedFor {
  const { zone, stream, since, until } = params;
  return {
    zone: typeof zone === "string" ? zone : "",
    stream: typeof stream === "string" ? stream : "",
    draft: draftIn(params),
    since: dateOf(since),
    until: dateOf(until),
  };
}

/** The address of the form with the same filled in. */
export function searchOf({ stream, draft, since, until }: AskedFor): string {
  const search = draftSearch(draft, draft.language === PAIRS ? askedOf(draft)?.attributes : undefined);
  search.set("stream", stream);
  if (since !== undefined) search.set("since", since.toISOString());
  if (until !== undefined) search.set("until", until.toISOString());
  return search.toString();
}

/** A draft as the job takes it: pairs are an object. Undefined while it cannot be asked for. */
export function filterOf(draft: FilterDraft): { language: string; filter: unknown } | undefined {
  const asked = isEmpty(draft) || !isReadable(draft) ? undefined : askedOf(draft);
  if (asked === undefined) return undefined;
  const { language, filter, ...pairs } = asked;
  return { language, filter: language === PAIRS ? pairs : filter };
}

function draftIn({ language = "predicate", filter }: Record<string, unknown>): FilterDraft {
  const fields = language === PAIRS ? (filter as object) : { filter };
  return draftOf({ language, ...fields } as Parameters<typeof draftOf>[0]);
}

function dateOf(time: unknown): Date | undefined {
  return typeof time === "string" ? new Date(time) : undefined;
}
