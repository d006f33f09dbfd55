/** Pauses between attempts: exponential, with full jitter, so that clients do not return at once. */

import { HubProblem } from "./errors.ts";

const MIN_S = 0.05; // before the first retry; then twice as long each time
const MAX_S = 5; // a hub that is available again is found within it

/** Return the bounds, in seconds, of the pause after so many failed attempts. */
export function pauseBoundsS(attempt: number, retryAfterS?: number): [number, number] {
  if (retryAfterS !== undefined) return [retryAfterS, retryAfterS * 1.25];
  return [0, Math.min(MIN_S * 2 ** Math.min(attempt, 10), MAX_S)];
}

/** Return a pause within the bounds, in milliseconds. */
export function pauseMs(attempt: number, error?: unknown): number {
  const after = error instanceof HubProblem ? error.retryAfterS : undefined;
  const [low, high] = pauseBoundsS(attempt, after);
  return (low + Math.random() * (high - low)) * 1000;
}

/** Wait; return at once when the signal is aborted. */
export async function wait(ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return;
  await new Promise<void>((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", done);
  });
}
