import { type QueryClient, queryOptions } from "@tanstack/react-query";

import { api, done } from "../../api/client";
import type { components } from "../../api/schema";

export type Overview = components["schemas"]["Overview"];
export type Component = components["schemas"]["Component"];

/** Labels of components whose names are unclear. */
export const LABELS: Record<string, string> = {
  system: "Stream system",
  beat: "Scheduler",
  deliveries: "Due deliveries",
  indexer: "Match indexes",
};

const INTERVAL_MS = 2_000;
const KEPT = 300; // ten minutes
const PAUSE_S_MAX = 30; // no rate across longer pauses

export interface Readings {
  now: Overview;
  before: Overview | undefined;
  history: Sample[];
}

/** One point of the charts. `rate`: events appended per second since the point before. */
export interface Sample {
  at: number; // seconds of the epoch
  events: number;
  rate: number | null;
  pending: number | null;
}

/** Query the overview every two seconds, with a history of ten minutes. */
export function readingsOf(zone: string, queries: QueryClient) {
  const queryKey = ["overview", zone];
  return queryOptions({
    queryKey,
    queryFn: async (): Promise<Readings> => {
      const now = await done(api.GET("/v1/overview", { params: { query: { zone } } }));
      const before = queries.getQueryData<Readings>(queryKey);
      return { now, before: before?.now, history: [...(before?.history ?? []), sampleOf(now, before)].slice(-KEPT) };
    },
    refetchInterval: INTERVAL_MS,
    gcTime: Infinity,
  });
}

function sampleOf(now: Overview, before: Readings | undefined): Sample {
  return {
    at: secondsOf(now),
    events: now.events,
    rate: before === undefined ? null : rateBetween(now, before.now, now.events - before.now.events),
    pending: now.backlog.pending,
  };
}

/** Return a stream's events per second between the last two readings. */
export function streamRate({ now, before }: Readings, name: string): number | null {
  const last = now.streams.find((stream) => stream.name === name)?.last;
  const previous = before?.streams.find((stream) => stream.name === name)?.last;
  if (before === undefined || last === undefined || previous === undefined) return null;
  return rateBetween(now, before, last - previous);
}

function rateBetween(now: Overview, before: Overview, count: number): number | null {
  const seconds = secondsOf(now) - secondsOf(before);
  return seconds > 0 && seconds < PAUSE_S_MAX ? Math.max(0, count / seconds) : null;
}

function secondsOf(overview: Overview): number {
  return Date.parse(overview.at) / 1000;
}
