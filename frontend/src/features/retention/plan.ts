import type { OneRun } from "../jobs/types";

export const ACTIONS = ["drop", "archive", "compact", "keep"] as const;
export type Action = (typeof ACTIONS)[number];

export const MEANINGS: Record<Action, string> = {
  drop: "delete from the database; an archived copy stays readable",
  archive: "next in the archiver's queue",
  compact: "copy out of a partition that is mostly dropped",
  keep: "no action",
};

// reasons of planned actions, and of refused ones
const REASONS: Record<string, string> = {
  age: "sealed longer ago than the policy's age",
  size: "newer segments hold the policy's bytes",
  count: "newer segments hold the policy's events",
  hold: "the stream has a hold",
  needed: "a durable cursor has not passed the segment",
  not_archived: "the stream is archived, and the segment is not yet",
  open: "the segment is not sealed",
  policy: "within the policy's limits",
  mostly_dropped: "at most half of the partition is live",
  gone: "already dropped or moved",
  archived: "already archived",
  archive_policy: "the stream's policy does not archive it",
  no_archive: "the hub has no archive",
  archive_damaged: "the archived file is damaged: archive the segment again first",
  archive_unavailable: "the archive is unavailable",
};

export function reasonOf(code: string): string {
  return REASONS[code] ?? code;
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

/** The details of a plan: totals, the largest streams, and the segments, those with an action first. */
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

/** Whether the plan uses proposed policies. */
export function isTry({ params }: OneRun): boolean {
  return typeof params.policies === "object" && params.policies !== null && Object.keys(params.policies).length > 0;
}
