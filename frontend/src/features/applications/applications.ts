import { queryOptions, useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";

import { api, done } from "../../api/client";
import { PAGING } from "../../api/pages";
import type { components } from "../../api/schema";

export type Application = components["schemas"]["Application"];
export type ApplicationGroup = components["schemas"]["ApplicationGroup"];
export type ApplicationState = components["schemas"]["Report"]["state"];

export const STREAM = "eventhub.applications"; // the stream of their events
export const STATES: readonly ApplicationState[] = ["online", "degraded", "faulted", "offline"];
const KIND = "applications";
const REFRESH_MS = 5_000;

export function useApplications(zone: string, state: ApplicationState | undefined) {
  return useInfiniteQuery({
    queryKey: [KIND, zone, "pages", state],
    queryFn: ({ pageParam }) => done(api.GET("/v1/applications", { params: { query: { zone, state, after: pageParam, limit: 100 } } })),
    refetchInterval: REFRESH_MS,
    ...PAGING,
  });
}

export function useApplicationGroups(zone: string) {
  return useInfiniteQuery({
    queryKey: [KIND, zone, "groups"],
    queryFn: ({ pageParam }) => done(api.GET("/v1/application-groups", { params: { query: { zone, after: pageParam, limit: 100 } } })),
    refetchInterval: REFRESH_MS,
    ...PAGING,
  });
}

export function oneApplication(zone: string, name: string) {
  return queryOptions({
    queryKey: [KIND, zone, "one", name],
    queryFn: () => done(api.GET("/v1/applications/{application}", { params: at(zone, name) })),
    refetchInterval: REFRESH_MS,
  });
}

export interface Report {
  name: string;
  state: ApplicationState;
  reason: string;
}

export function useReport(zone: string) {
  return useWrite(zone, ({ name, ...body }: Report) => done(api.PUT("/v1/applications/{application}", { params: at(zone, name), body })));
}

/** Starts to monitor heartbeats, or with null stops. */
export function useMonitor(zone: string, name: string) {
  return useWrite(zone, async (timeout: number | null) => {
    if (timeout === null) await done(api.DELETE("/v1/applications/{application}/monitor", { params: at(zone, name) }));
    else await done(api.PUT("/v1/applications/{application}/monitor", { params: at(zone, name), body: { timeout_s: timeout } }));
  });
}

export function useDeleteApplication(zone: string, name: string) {
  return useWrite(zone, () => done(api.DELETE("/v1/applications/{application}", { params: at(zone, name) })));
}

export interface GroupMembers {
  name: string;
  applications: string[];
}

export function useSetGroup(zone: string) {
  return useWrite(zone, ({ name, applications }: GroupMembers) =>
    done(api.PUT("/v1/application-groups/{application_group}", { params: ofGroup(zone, name), body: { applications } })),
  );
}

export function useDeleteGroup(zone: string, name: string) {
  return useWrite(zone, () => done(api.DELETE("/v1/application-groups/{application_group}", { params: ofGroup(zone, name) })));
}

function at(zone: string, application: string) {
  return { path: { application }, query: { zone } };
}

function ofGroup(zone: string, name: string) {
  return { path: { application_group: name }, query: { zone } };
}

function useWrite<Body, Answer>(zone: string, mutationFn: (body: Body) => Promise<Answer>) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn,
    onSuccess: () => {
      for (const kind of [KIND, "state", "history"]) void queries.invalidateQueries({ queryKey: [kind, zone] });
    },
  });
}
