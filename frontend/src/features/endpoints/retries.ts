import { duration } from "../../parts/text";
import type { Endpoint } from "./endpoints";

/** The schedule of the hub (Standard Webhooks), in seconds. */
export const DEFAULT_SCHEDULE: readonly number[] = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400];
export const DEFAULT_TIMEOUT_S = 12;
export const DEFAULT_DISABLE_AFTER_S = 432_000;
export const LIMIT_NAMES = ["retry_schedule", "rate_limit", "concurrency", "timeout_s", "disable_after_s"] as const;

export type Limits = Pick<Endpoint, (typeof LIMIT_NAMES)[number]>;

const UNITS: readonly (readonly [string, number])[] = [
  ["d", 86_400],
  ["h", 3_600],
  ["min", 60],
  ["s", 1],
];

/** A pause in its two largest units: `1 h 30 min`. */
export function pause(seconds: number): string {
  let left = Math.round(seconds);
  const parts: string[] = [];
  for (const [unit, size] of UNITS) {
    const amount = Math.floor(left / size);
    if (amount > 0 && parts.length < 2) parts.push(`${amount} ${unit}`);
    left -= amount * size;
  }
  return parts.length === 0 ? "0 s" : parts.join(" ");
}

/** A schedule in words: `10 attempts within 3 d 3 h, then a dead letter`. */
export function summary(schedule: readonly number[]): string {
  if (schedule.length === 0) return "1 attempt, no retries";
  const total = schedule.reduce((sum, one) => sum + one, 0);
  return `${schedule.length + 1} attempts within about ${pause(total)}, then a dead letter`;
}

/** When a failing endpoint is disabled, in words. */
export function disablesAfter(seconds: number | null): string {
  if (seconds === 0) return "never";
  return `after ${duration(seconds ?? DEFAULT_DISABLE_AFTER_S)} without a success`;
}
