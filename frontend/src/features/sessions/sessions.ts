import { queryOptions, useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";

import { api, done, ifMatch, loaded } from "../../api/client";
import { PAGING } from "../../api/pages";
import type { components } from "../../api/schema";

export type Session = components["schemas"]["Session"];
export type SessionGroup = components["schemas"]["SessionGroup"];
export type SessionKind = Session["kind"];
export type Quality = SessionGroup["quality"];
export type Order = SessionGroup["order"];
export type SuppliedType = components["schemas"]["SuppliedType"];
export type NewSession = components["schemas"]["NewSession"] & { client: string };
export type SessionChange = components["schemas"]["PatchedSessionChange"];
export type NewSessionGroup = components["schemas"]["NewSessionGroup"] & { client: string };
export type SessionGroupChange = components["schemas"]["PatchedSessionGroupChange"];

export const KINDS: readonly SessionKind[] = ["admin", "supplier", "consumer"];
export const QUALITIES: readonly Quality[] = ["reliable", "best_effort"];
export const ORDERS: readonly Order[] = ["none", "fifo", "priority", "validity", "supplier", "type", "timestamp", "causal"];
const KIND = "sessions";
const REFRESH_MS = 5_000;

export interface SessionFilter {
  client?: string;
  kind?: SessionKind;
  group?: string;
}

export function useSessions(zone: string, filter: SessionFilter) {
  return useInfiniteQuery({
    queryKey: [KIND, zone, "pages", filter],
    queryFn: ({ pageParam }) => done(api.GET("/v1/sessions", { params: { query: { zone, ...filter, after: pageParam, limit: 100 } } })),
    refetchInterval: REFRESH_MS,
    ...PAGING,
  });
}

export function useSessionGroups(zone: string, client: string | undefined) {
  return useInfiniteQuery({
    queryKey: [KIND, zone, "groups", client],
    queryFn: ({ pageParam }) => done(api.GET("/v1/session-groups", { params: { query: { zone, client, after: pageParam, limit: 100 } } })),
    ...PAGING,
  });
}

/** Query the names of the zone's session groups, at most the first thousand. */
export function useSessionGroupNames(zone: string) {
  return useQuery({
    queryKey: [KIND, zone, "groupNames"],
    queryFn: async () =>
      (await done(api.GET("/v1/session-groups", { params: { query: { zone, limit: 1000 } } }))).items.map(({ name }) => name),
    staleTime: 5_000,
  });
}

export function oneSession(zone: string, id: number) {
  return queryOptions({
    queryKey: [KIND, zone, "one", id],
    queryFn: () => loaded(api.GET("/v1/sessions/{session}", { params: at(zone, id) })),
  });
}

export function oneSessionGroup(zone: string, id: number) {
  return queryOptions({
    queryKey: [KIND, zone, "group", id],
    queryFn: () => loaded(api.GET("/v1/session-groups/{session_group}", { params: ofGroup(zone, id) })),
  });
}

export function useCreateSession(zone: string) {
  return useWrite(zone, (body: NewSession) => done(api.POST("/v1/sessions", { params: { query: { zone } }, body })));
}

/** Fails with 412 if it has changed since it was loaded with `etag`. */
export function useChangeSession(zone: string, id: number, etag?: string) {
  return useWrite(zone, (body: SessionChange) =>
    done(api.PATCH("/v1/sessions/{session}", { params: at(zone, id), headers: ifMatch(etag), body })),
  );
}

export function useDeleteSession(zone: string, id: number) {
  return useWrite(zone, () => done(api.DELETE("/v1/sessions/{session}", { params: at(zone, id) })));
}

export function useCreateSessionGroup(zone: string) {
  return useWrite(zone, (body: NewSessionGroup) => done(api.POST("/v1/session-groups", { params: { query: { zone } }, body })));
}

/** Fails with 412 if it has changed since it was loaded with `etag`. */
export function useChangeSessionGroup(zone: string, id: number, etag?: string) {
  return useWrite(zone, (body: SessionGroupChange) =>
    done(api.PATCH("/v1/session-groups/{session_group}", { params: ofGroup(zone, id), headers: ifMatch(etag), body })),
  );
}

export function useDeleteSessionGroup(zone: string, id: number) {
  return useWrite(zone, () => done(api.DELETE("/v1/session-groups/{session_group}", { params: ofGroup(zone, id) })));
}

function at(zone: string, id: number) {
  return { path: { session: String(id) }, query: { zone } };
}

function ofGroup(zone: string, id: number) {
  return { path: { session_group: String(id) }, query: { zone } };
}

function useWrite<Body, Answer>(zone: string, mutationFn: (body: Body) => Promise<Answer>) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn,
    onSuccess: () => {
      for (const kind of [KIND, "registrations", "registration-groups"]) void queries.invalidateQueries({ queryKey: [kind, zone] });
    },
  });
}
