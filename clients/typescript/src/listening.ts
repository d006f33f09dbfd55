/** One listener across all its connections: resumes at its position. */

import { pauseMs, wait } from "./backoff.ts";
import { isCursor } from "./cursor.ts";
import type { Start } from "./cursor.ts";
import { GapError, HubProblem, mayRetry, refusal, SegmentMismatchError } from "./errors.ts";
import type { Http } from "./http.ts";
import { hasWebSocket } from "./socket.ts";
import type { ReadPosition } from "./position.ts";
import { source } from "./transports.ts";
import type { Transport } from "./transports.ts";
import type { Delivered, Snapshot } from "./types.ts";

/** Events that are no longer stored, or a cursor that belongs to another log. */
export type Lost = GapError | SegmentMismatchError;

/**
 * `throw`, the default; `continue` after what is missing; or a function that gets the error and
 * returns the start from which to continue, or throws.
 */
export type OnGap = "throw" | "continue" | ((error: Lost) => Start | Promise<Start>);

/** How to follow a listener. */
export interface FollowOptions {
  /** By default `websocket`, or `sse` where there is none. */
  readonly transport?: Transport | undefined;
  readonly onGap?: OnGap | undefined;
  /** The number of events that may wait for the caller; over a websocket. */
  readonly window: number;
  /** Ends the iteration. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Yield every event and snapshot of a listener, in order, once, until the signal is aborted. Throws
 * HubProblem if a retry cannot help, and LossDetected.
 */
export async function* follow(
  http: Http,
  position: ReadPosition,
  options: FollowOptions,
): AsyncGenerator<Delivered | Snapshot> {
  const transport = options.transport ?? (hasWebSocket() ? "websocket" : "sse");
  const controller = new AbortController();
  const abort = (): void => controller.abort();
  options.signal?.addEventListener("abort", abort);
  if (options.signal?.aborted) abort();
  let attempt = 0;
  let started = false;
  try {
    while (!controller.signal.aborted) {
      started = false;
      let failed: unknown;
      try {
        const found = source(transport, http, position, options.window, controller.signal);
        for await (const message of found.messages()) {
          const item = position.take(message);
          if (message.op === "listening" || item) [started, attempt] = [true, 0];
          if (!item) continue;
          yield item;
          if ("sequence" in item) found.taken(item.sequence);
        }
      } catch (error) {
        failed = error;
        if (controller.signal.aborted) return;
        if (error instanceof GapError || error instanceof SegmentMismatchError) {
          position.start = await resumeAt(options.onGap ?? "throw", position, error);
          if (attempt === 0) {
            attempt = 1;
            continue;
          }
        } else if (!mayRetry(error) && !(renewable(http, error) && started)) throw error;
      }
      await wait(pauseMs(attempt, failed), controller.signal);
      attempt += 1;
    }
  } finally {
    options.signal?.removeEventListener("abort", abort);
    controller.abort();
  }
}

/** Return whether another credential may be accepted in place of one that has expired. */
export function renewable(http: Http, error: unknown): boolean {
  return http.renews && error instanceof HubProblem && error.status === 401;
}

async function resumeAt(onGap: OnGap, position: ReadPosition, error: Lost): Promise<Start> {
  const known = "known" in error.problem || !isCursor(position.start);
  const found = known ? error : (refusal(position.withKnown(error.problem)) as Lost);
  if (onGap === "throw") throw found;
  return onGap === "continue" ? found.resume : await onGap(found);
}

