import type { OneRun } from "../jobs/types";

export const ACTIONS = ["drop", "archive", "compact", "keep"] as const;
export type Action = (typeof ACTIONS)[number];

export const MEANINGS: Record<Action, string> = {
  drop: "it leaves the database; what is in the archive stays readable there",
  archive: "the archiver takes it next",
  compact: "it stays, and is copied out of a partition that is mostly gone",
  keep: "nothing happens to it",
};

// why a segment is planned for something, and why something was not done to it
const WHYS: Record<string, string> = {
  age: "sealed longer ago than the policy keeps",
  size: "newer segments hold the policy's bytes already",
  count: "newer segments hold the policy's events already",
  hold: "the stream is on hold",
  needed: "a durable cursor has not passed it yet",
  not_archived: "the stream is archived first, and this is not yet",
  open: "it is still written to",
  policy: "the policy keeps it",
  mostly_gone: "at most half of its partition is still live",
  gone: "it has left already",
  archived: "it is in the archive already",
  archive_policy: "the stream is not archived any more",
  no_archive: "the hub has no archive",
  archive_damaged: "its file in the archive is damaged: archive it anew first",
  archive_unavailable: "the archive does not answer",
};

export function whyOf(code: string): string {
  return WHYS[code] ?? code;
}

export interface Amount {
  segments: number;
  events: number;
  bytes: number;
}

export interface Planned {
  zone: string; // "": the hub-wide stream
  stream: string;
  segment: string;
  first: number;
  last: number;
  events: number;
  bytes: number;
  action: Action;
  reason: string;
  tier: string;
}

export type StreamPlan = Record<Action, Amount> & { zone: string; stream: string };

/** The details of a plan: totals of all, and of the largest streams; segments, those that something happens to first. */
export interface Plan {
  actions: Record<Action, Amount>;
  segments: Planned[];
  segment_count: number;
  streams: StreamPlan[];
}

const NONE: Amount = { segments: 0, events: 0, bytes: 0 };
const NOTHING: Plan = { actions: { drop: NONE, archive: NONE, compact: NONE, keep: NONE }, segments: [], segment_count: 0, streams: [] };

export function planOf({ details }: OneRun): Plan {
  return { ...NOTHING, ...details };
}

/** Was it made by policies that are only tried? */
export function isTry({ params }: OneRun): boolean {
  return typeof params.policies === "object" && params.policies !== null && Object.keys(params.policies).length > 0;
}
