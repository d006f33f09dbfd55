import type { Output } from "../patterns/outputText";
import { type Language, LANGUAGES, type Part, type Position } from "../patterns/patterns";
import type { OneRun } from "../jobs/types";

/** An output of a pattern that is listed in its result. */
export interface PatternOutput extends Output {
  at: Position & { appended_at: string };
}

interface PatternFault {
  code: string;
  message: string;
  line: number;
  column: number;
}

/** The details of a pattern's back-test; the lists are bounded. */
export interface PatternBacktestDetails {
  matches: number;
  notified: number;
  announced: number;
  failed: number;
  dropped: Record<string, number>;
  stopped: { reason: "once" | "suspended" | "time_max"; at: Position; fault: PatternFault | null } | null;
  searched_events: number;
  searched_segments: number;
  skipped_segments: number;
  skipped: { segment: string; fault: string }[];
  histogram: [number, number, number][]; // start of each bucket in microseconds, matches, other outputs
  bucket_s: number;
  sample: PatternOutput[];
  outputs: PatternOutput[];
  is_complete: boolean;
  waiting: { key: unknown; tree: Part }[];
  waiting_keys: number;
}

/** The parameters of a pattern's back-test. */
export interface PatternBacktestParams {
  language: Language;
  pattern: string;
  streams: string[];
  once: boolean;
}

export function isOfPattern({ params }: OneRun): boolean {
  return "pattern" in params;
}

export function patternDetails({ details }: OneRun): PatternBacktestDetails {
  return details as unknown as PatternBacktestDetails;
}

export function patternParams({ params }: OneRun): PatternBacktestParams {
  return { once: false, ...params } as unknown as PatternBacktestParams;
}

/** The parameters in the address of the form. */
export function patternAt(search: URLSearchParams): PatternBacktestParams {
  const language = LANGUAGES.find(({ value }) => value === search.get("language"))?.value ?? "ready";
  return { language, pattern: search.get("pattern") ?? "", streams: search.getAll("streams"), once: search.get("once") === "true" };
}

/** The address of the form with the same parameters filled in. */
export function patternSearch({ language, pattern, streams, once }: PatternBacktestParams, range: Record<string, string> = {}): string {
  const search = new URLSearchParams({ language, pattern, ...range });
  for (const stream of streams) search.append("streams", stream);
  if (once) search.set("once", "true");
  return search.toString();
}
