/** The hub's problem documents as errors, one class for each reaction. */

import type { Cursor, Start } from "./cursor.ts";

/** The fields of a refusal (RFC 9457). `code` is stable; /docs/errors of a hub lists all. */
export interface Problem {
  readonly code?: string;
  readonly status?: number;
  readonly detail?: string;
  readonly position?: Record<string, unknown>;
  readonly [name: string]: unknown;
}

/** A refusal of the hub. */
export class HubProblem extends Error {
  override name = "HubProblem";
  readonly problem: Problem;
  readonly code: string;
  readonly status: number;
  readonly position: Record<string, unknown>;
  /** The pause in seconds that the hub requests before the next attempt. */
  readonly retryAfterS: number | undefined;

  constructor(problem: Problem, retryAfterS?: number) {
    const code = String(problem.code ?? "internal");
    super(`${code}: ${problem.detail ?? ""}`);
    this.problem = problem;
    this.code = code;
    this.status = Number(problem.status ?? 500);
    this.position = problem.position ?? {};
    this.retryAfterS = retryAfterS;
  }
}

/** The request or an event in it is wrong (400, 413, 415, 422): correct it; see `position`. */
export class InvalidRequest extends HubProblem {
  override name = "InvalidRequest";
}

/** The credential is missing, wrong, expired (401), or has no grant for this (403). */
export class NotAllowed extends HubProblem {
  override name = "NotAllowed";
}

/** There is no such stream, event, type or resource (404). */
export class Missing extends HubProblem {
  override name = "Missing";
}

/** The request conflicts with what is stored (409). */
export class ConflictError extends HubProblem {
  override name = "ConflictError";
}

/** A producer's number is below its window: it is unknown whether the event was stored. */
export class ProducerWindow extends ConflictError {
  override name = "ProducerWindow";
}

/** The resource has changed since the sequence in `If-Match` (412). */
export class Changed extends HubProblem {
  override name = "Changed";
}

/** A range of sequences in one segment. */
export interface Range {
  readonly segment: string;
  readonly first: number;
  readonly last: number;
}

/** The next events are no longer stored (410): `missing` says which; continue at `resume`. */
export class GapError extends HubProblem {
  override name = "GapError";

  /** The cursor before the first event that is still stored. */
  get resume(): Cursor {
    const found = this.problem["resume"] as Cursor | undefined;
    if (found) return { segment: found.segment, sequence: found.sequence };
    const first = this.problem["first_available"] as Cursor;
    return { segment: first.segment, sequence: first.sequence - 1 };
  }

  /** The missing sequences; undefined if the listener had no cursor yet. */
  get missing(): Range | undefined {
    const known = this.problem["known"];
    const { segment, sequence } = this.resume;
    if (typeof known !== "number" || known >= sequence) return undefined;
    return { segment, first: known + 1, last: sequence };
  }
}

/** The cursor belongs to another log: the hub's was wiped or restored (409). */
export class SegmentMismatchError extends HubProblem {
  override name = "SegmentMismatchError";

  /** The segment being written. */
  get current(): Range | undefined {
    return this.problem["current"] as Range | undefined;
  }

  /** The start of the new log, of which nothing was received. */
  get resume(): Start {
    return "oldest";
  }
}

/** The hub cannot do this right now (408, 429, 5xx); nothing was stored: try again. */
export class Unavailable extends HubProblem {
  override name = "Unavailable";
}

/** It is unknown whether the events were stored; repeat with the same ids or key only. */
export class OutcomeUnknown extends Unavailable {
  override name = "OutcomeUnknown";
}

/** The hub's disk is full (507); nothing was stored. */
export class StorageFull extends Unavailable {
  override name = "StorageFull";
}

/** There was no answer: the hub is unreachable, or the connection was lost. */
export class ConnectionLost extends Error {
  override name = "ConnectionLost";
}

/** A frame was lost: `prev` is not the last sequence of the listener. */
export class LossDetected extends Error {
  override name = "LossDetected";
  readonly known: number;
  readonly prev: number;

  constructor(known: number, prev: number) {
    super(`Known up to ${known}, but the next frame follows ${prev}: a frame was lost.`);
    this.known = known;
    this.prev = prev;
  }
}

/** The hub ended a session on this connection, for the reason of `disconnected`. */
export class SessionEnded extends Error {
  override name = "SessionEnded";
  readonly session: string;
  readonly reason: string;

  constructor(session: string, reason: string) {
    super(`The session ${session} was disconnected: ${reason}.`);
    this.session = session;
    this.reason = reason;
  }
}

type Kind = new (problem: Problem, retryAfterS?: number) => HubProblem;

const RETRY = new Set([408, 429, 502, 503, 504, 507]); // the hub, or a proxy, may succeed later
const BY_CODE: Record<string, Kind> = {
  gap: GapError,
  segment_mismatch: SegmentMismatchError,
  producer_window: ProducerWindow,
  outcome_unknown: OutcomeUnknown,
  storage_full: StorageFull,
  changed: Changed,
};
const BY_STATUS: Record<number, Kind> = {
  400: InvalidRequest,
  401: NotAllowed,
  403: NotAllowed,
  404: Missing,
  409: ConflictError,
  410: Missing,
  412: Changed,
  413: InvalidRequest,
  415: InvalidRequest,
  422: InvalidRequest,
};

/** Return the error for a problem document. */
export function refusal(problem: Problem, retryAfterS?: number): HubProblem {
  const status = Number(problem.status ?? 500);
  const other = RETRY.has(status) || status >= 500 ? Unavailable : HubProblem;
  const Found = BY_CODE[String(problem.code)] ?? BY_STATUS[status] ?? other;
  return new Found(problem, retryAfterS);
}

/** Return whether a later attempt may succeed. */
export function mayRetry(error: unknown): boolean {
  return error instanceof ConnectionLost || (error instanceof HubProblem && RETRY.has(error.status));
}
