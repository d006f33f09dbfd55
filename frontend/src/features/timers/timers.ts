import { queryOptions, useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";

import { api, done } from "../../api/client";
import { PAGING } from "../../api/pages";
import type { components } from "../../api/schema";
import { duration } from "../../parts/text";

export type Timer = components["schemas"]["Timer"];
export type NewTimer = components["schemas"]["NewTimer"];

const KIND = "timers";
const REFRESH_MS = 5_000;

export const KINDS = {
  name: "delayed",
  label: "Kind of timer",
  none: "Every timer",
  data: [
    { value: "true", label: "Delayed events" },
    { value: "false", label: "Other timers" },
  ],
};

export function useTimers(zone: string, client: string | undefined, chosen: string | undefined) {
  const delayed = chosen === undefined ? undefined : chosen === "true";
  return useInfiniteQuery({
    queryKey: [KIND, zone, "pages", client, delayed],
    queryFn: ({ pageParam }) => done(api.GET("/v1/timers", { params: { query: { zone, client, delayed, after: pageParam, limit: 100 } } })),
    refetchInterval: REFRESH_MS,
    ...PAGING,
  });
}

export function oneTimer(zone: string, id: number) {
  return queryOptions({
    queryKey: [KIND, zone, "one", id],
    queryFn: () => done(api.GET("/v1/timers/{timer}", { params: at(zone, id) })),
    refetchInterval: REFRESH_MS,
  });
}

export function useCreateTimer(zone: string) {
  return useWrite(zone, (body: NewTimer) => done(api.POST("/v1/timers", { params: { query: { zone } }, body })));
}

export function useSuspendTimer(zone: string, id: number) {
  return useWrite(zone, (suspended: boolean) => done(api.PATCH("/v1/timers/{timer}", { params: at(zone, id), body: { suspended } })));
}

export function useDeleteTimer(zone: string, id: number) {
  return useWrite(zone, () => done(api.DELETE("/v1/timers/{timer}", { params: at(zone, id) })));
}

/** The name of a timer: a delayed event has no handle. */
export function nameOf({ handle, event }: Timer): string {
  return handle ?? `${typeof event?.type === "string" ? event.type : "event"}, delayed`;
}

/** When a timer fires, in words. */
export function scheduleText({ every_s: every, cron, timezone }: Timer): string {
  if (every !== null) return `every ${duration(every)}`;
  return cron === null ? "once" : `${cron} (${timezone ?? "UTC"})`;
}

function at(zone: string, id: number) {
  return { path: { timer: String(id) }, query: { zone } };
}

function useWrite<Body, Answer>(zone: string, mutationFn: (body: Body) => Promise<Answer>) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn,
    onSuccess: () => void queries.invalidateQueries({ queryKey: [KIND, zone] }),
  });
}
