import { queryOptions, useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";

import { api, done } from "../../api/client";
import { PAGING } from "../../api/pages";
import type { components } from "../../api/schema";

export type Replay = components["schemas"]["Replay"];
export type Preview = components["schemas"]["Preview"];
export type ReplayRequest = components["schemas"]["ReplayRequest"];
export type RecoverRequest = components["schemas"]["RecoverRequest"];

export const STATES = ["running", "paused", "completed", "cancelled", "failed"] as const satisfies readonly Replay["state"][];

/** What a run sends, as the form has it: events of the log, or failed deliveries of an endpoint. */
export type NewReplay = { source: "log"; body: ReplayRequest } | { source: "deliveries"; endpoint: number; body: RecoverRequest };

export interface ReplayFilter {
  endpoint?: number;
  state?: Replay["state"];
}

const BUSY_INTERVAL_MS = 1_000;
const INTERVAL_MS = 5_000;
const WINDOW_MS = 10_000; // of the measured rate

export function isGoing({ state }: Replay): boolean {
  return state === "running" || state === "paused";
}

/** The written deliveries at one time. */
interface Reading {
  at: number;
  written: number;
}

export interface FollowedReplay {
  replay: Replay;
  readings: readonly Reading[]; // of the last seconds, the oldest first
}

/** One run, read every second until it ends, with the readings that its rate is measured from. */
export function oneReplay(zone: string, id: number) {
  const queryKey = ["replays", zone, "one", id];
  return queryOptions({
    queryKey,
    queryFn: async ({ client }): Promise<FollowedReplay> => {
      const replay = await done(api.GET("/v1/replays/{replay}", { params: at(zone, id) }));
      const now = Date.now();
      const before = client.getQueryData<FollowedReplay>(queryKey)?.readings ?? [];
      return { replay, readings: [...before.filter((one) => one.at >= now - WINDOW_MS), { at: now, written: replay.written }] };
    },
    refetchInterval: ({ state: { data } }) => (data === undefined || isGoing(data.replay) ? BUSY_INTERVAL_MS : false),
  });
}

/** Deliveries per second over the last readings; undefined before the second one. */
export function rateOf(readings: readonly Reading[]): number | undefined {
  const [first, last] = [readings[0], readings.at(-1)];
  if (first === undefined || last === undefined || last.at === first.at) return undefined;
  return ((last.written - first.written) * 1000) / (last.at - first.at);
}

/** Query the runs, the newest first; refreshed while only the first page is loaded. */
export function useReplays(zone: string, filter: ReplayFilter) {
  return useInfiniteQuery({
    queryKey: ["replays", zone, "pages", filter],
    queryFn: ({ pageParam }) => done(api.GET("/v1/replays", { params: { query: { zone, ...filter, after: pageParam, limit: 50 } } })),
    ...PAGING,
    refetchInterval: ({ state: { data } }) => {
      if (data?.pages.length !== 1) return false;
      return data.pages[0]?.items.some(isGoing) ? BUSY_INTERVAL_MS : INTERVAL_MS;
    },
  });
}

/** Count what a run would send; nothing is written. */
export function usePreview(zone: string) {
  return useMutation({
    mutationFn: (asked: NewReplay) =>
      done(
        asked.source === "log"
          ? api.POST("/v1/replays/preview", { params: { query: { zone } }, body: asked.body })
          : api.POST("/v1/endpoints/{endpoint}/recover/preview", { params: endpointAt(zone, asked.endpoint), body: asked.body }),
      ),
  });
}

export function useStartReplay(zone: string) {
  const refresh = useRefresh(zone);
  return useMutation({
    mutationFn: (asked: NewReplay) =>
      done(
        asked.source === "log"
          ? api.POST("/v1/replays", { params: { query: { zone } }, body: asked.body })
          : api.POST("/v1/endpoints/{endpoint}/recover", { params: endpointAt(zone, asked.endpoint), body: asked.body }),
      ),
    onSuccess: refresh,
  });
}

export function useChangeReplay(zone: string, id: number, action: "pause" | "resume" | "cancel") {
  const refresh = useRefresh(zone);
  return useMutation({
    mutationFn: () => done(api.POST(`/v1/replays/{replay}/${action}`, { params: at(zone, id) })),
    onSuccess: refresh,
  });
}

function at(zone: string, id: number) {
  return { path: { replay: String(id) }, query: { zone } };
}

function endpointAt(zone: string, endpoint: number) {
  return { path: { endpoint: String(endpoint) }, query: { zone } };
}

function useRefresh(zone: string) {
  const queries = useQueryClient();
  return () => Promise.all(["replays", "deliveries", "dead-letters"].map((kind) => queries.invalidateQueries({ queryKey: [kind, zone] })));
}
