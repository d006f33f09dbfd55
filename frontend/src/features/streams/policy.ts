import { bytes, duration, whole } from "../../parts/text";
import type { Policy, PolicyChange, Stream } from "./streams";

/** Of a new stream; what the hub takes when nothing is said. */
export const DEFAULTS: Policy = {
  durability: "sync",
  segment_events_max: 100_000,
  segment_bytes_max: 64 * 2 ** 20,
  segment_age_s_max: null,
  keyed: false,
  restate: false,
  retain_events: null,
  retain_bytes: null,
  retain_age_s: null,
  on_lag: "keep",
  hold: null,
  archive: false,
  undeclared: "accept",
  matching: "auto",
  quench: false,
  filterable_data: false,
};

const NAMES = Object.keys(DEFAULTS) as (keyof Policy)[];

/** What a transient stream, which is in memory alone, cannot promise. */
export const NOT_TRANSIENT: readonly (keyof Policy)[] = ["keyed", "restate", "segment_age_s_max", "on_lag", "hold", "archive"];

export function policyOf(stream: Stream): Policy {
  return Object.fromEntries(NAMES.map((name) => [name, stream[name]])) as unknown as Policy;
}

/** What differs, as the hub takes it. */
export function changeOf(before: Policy, after: Policy): PolicyChange {
  return Object.fromEntries(NAMES.filter((name) => before[name] !== after[name]).map((name) => [name, after[name]]));
}

/** How long events are kept, in a few words. */
export function retention({ retain_age_s: age, retain_bytes: size, retain_events: count, durability }: Policy): string {
  const limits = [age && duration(age), size && bytes(size), count && `${whole(count)} events`].filter(Boolean);
  if (limits.length > 0) return limits.join(" · ");
  return durability === "transient" ? "in memory" : "no limit";
}
