import { keepPreviousData, queryOptions } from "@tanstack/react-query";

import { api, done } from "../../api/client";
import type { components } from "../../api/schema";
import { whole } from "../../parts/text";

export type Statistics = components["schemas"]["EndpointStatistics"];
export type Point = Statistics["points"][number];
type Counts = Statistics["total"];
type Step = Statistics["step"];

export const STEPS = [
  { value: "minute", label: "Last hour", every: "minute", interval_ms: 5_000 },
  { value: "hour", label: "Last 7 days", every: "hour", interval_ms: 30_000 },
] as const;

/** How an attempt fails, in words. */
const FAILURES: Record<keyof Counts["failures"], string> = {
  client_errors: "answered with 4xx",
  server_errors: "answered with 5xx",
  timeouts: "timed out",
  connection_errors: "without a connection",
  other: "failed otherwise",
};

export function statisticsOf(zone: string, id: number, step: Step) {
  return queryOptions({
    queryKey: ["endpoints", zone, "statistics", id, step],
    queryFn: () => done(api.GET("/v1/endpoints/{endpoint}/statistics", { params: { path: { endpoint: String(id) }, query: { zone, step } } })),
    refetchInterval: STEPS.find(({ value }) => value === step)?.interval_ms,
    placeholderData: keepPreviousData,
  });
}

export function failed({ attempts, delivered }: Counts): number {
  return attempts - delivered;
}

/** The failed attempts by kind: `3 answered with 5xx, 1 timed out`. */
export function failuresText({ failures }: Counts): string {
  const kinds = Object.keys(FAILURES) as (keyof typeof FAILURES)[];
  return kinds.flatMap((kind) => (failures[kind] > 0 ? [`${whole(failures[kind])} ${FAILURES[kind]}`] : [])).join(", ");
}

const SHARE = new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 1, roundingMode: "floor" });

/** The share of delivered attempts; never 100 % unless all were. */
export function shareText({ attempts, delivered }: Counts): string {
  return attempts === 0 ? "–" : SHARE.format(delivered / attempts);
}

const DIGITS = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 2 });
const UNITS: readonly (readonly [number, string])[] = [[86_400_000, "d"], [3_600_000, "h"], [60_000, "min"], [1_000, "s"]];

/** A time with two digits: `35 ms`, `1.2 s`, `4 min`. */
export function timeText(ms: number): string {
  const [size, unit] = UNITS.find(([one]) => ms >= one) ?? [1, "ms"];
  return `${DIGITS.format(ms / size)} ${unit}`;
}
