import { queryOptions, useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";

import { api, done, ifMatch, loaded } from "../../api/client";
import { PAGING } from "../../api/pages";
import type { components } from "../../api/schema";
import { whole } from "../../parts/text";

export type Session = components["schemas"]["Session"];
export type SessionGroup = components["schemas"]["SessionGroup"];
export type SessionKind = Session["kind"];
export type Quality = SessionGroup["quality"];
export type Order = SessionGroup["order"];
export type Position = components["schemas"]["SessionPosition"];
export type Claim = components["schemas"]["SessionClaim"];
export type Sharing = SessionGroup["sharing"];
export type Options = components["schemas"]["OrderOptions"];
export type SuppliedType = components["schemas"]["SuppliedType"];
export type NewSession = components["schemas"]["NewSession"] & { client: string };
export type SessionChange = components["schemas"]["PatchedSessionChange"];
export type NewSessionGroup = components["schemas"]["NewSessionGroup"] & { client: string };
export type SessionGroupChange = components["schemas"]["PatchedSessionGroupChange"];

export const KINDS: readonly SessionKind[] = ["admin", "supplier", "consumer"];
export const QUALITIES: readonly Quality[] = ["reliable", "best_effort"];
export const ORDERS: readonly Order[] = ["none", "fifo", "priority", "validity", "supplier", "type", "timestamp", "causal"];

export const SHARINGS: readonly Sharing[] = ["every", "one"];

export const isSharing = (text: string | null): text is Sharing => SHARINGS.some((one) => one === text);
export const isQuality = (text: string | null): text is Quality => QUALITIES.some((one) => one === text);
export const isOrder = (text: string | null): text is Order => ORDERS.some((one) => one === text);

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
    refetchInterval: REFRESH_MS,
    queryFn: ({ pageParam }) => done(api.GET("/v1/session-groups", { params: { query: { zone, client, after: pageParam, limit: 100 } } })),
    ...PAGING,
  });
}

/** A session, or a session group whose members share. */
export interface Holder {
  of: "session" | "session group";
  id: number;
}

/** The positions of a session or session group by stream. */
export function usePositions(zone: string, { of, id }: Holder) {
  return useInfiniteQuery({
    queryKey: [KIND, zone, "positions", of, id],
    queryFn: ({ pageParam }) => {
      const query = { zone, after: pageParam, limit: 100 };
      return of === "session"
        ? done(api.GET("/v1/sessions/{session}/positions", { params: { path: { session: String(id) }, query } }))
        : done(api.GET("/v1/session-groups/{session_group}/positions", { params: { path: { session_group: String(id) }, query } }));
    },
    refetchInterval: REFRESH_MS,
    ...PAGING,
  });
}

/** The events that a session or session group has not acknowledged, those that were handed out first at first. */
export function useClaims(zone: string, { of, id }: Holder) {
  return useInfiniteQuery({
    queryKey: [KIND, zone, "claims", of, id],
    queryFn: ({ pageParam }) => {
      const query = { zone, after: pageParam, limit: 100 };
      return of === "session"
        ? done(api.GET("/v1/sessions/{session}/claims", { params: { path: { session: String(id) }, query } }))
        : done(api.GET("/v1/session-groups/{session_group}/claims", { params: { path: { session_group: String(id) }, query } }));
    },
    refetchInterval: REFRESH_MS,
    ...PAGING,
  });
}

export function oneSession(zone: string, id: number) {
  return queryOptions({
    queryKey: [KIND, zone, "one", id],
    queryFn: () => loaded(api.GET("/v1/sessions/{session}", { params: at(zone, id) })),
    refetchInterval: REFRESH_MS,
  });
}

export function oneSessionGroup(zone: string, id: number) {
  return queryOptions({
    queryKey: [KIND, zone, "group", id],
    queryFn: () => loaded(api.GET("/v1/session-groups/{session_group}", { params: ofGroup(zone, id) })),
    refetchInterval: REFRESH_MS,
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

/** The settings of delivery in a few words. */
export function deliveryText({ quality, order, window, attempts_max: attempts }: Pick<SessionGroup, "quality" | "order" | "window" | "attempts_max">): string {
  if (quality !== "reliable") return `${qualityText(quality)}, ${order}`;
  const end = attempts === null ? "" : `, at most ${attempts === 1 ? "1 attempt" : `${whole(attempts)} attempts`}`;
  return `${quality}, ${order}, window ${whole(window)}${end}`;
}

/** How the members of a group share its events, in a few words. */
export function sharingText({ sharing, share_by: key }: Pick<SessionGroup, "sharing" | "share_by">): string {
  if (sharing === "every") return "every member";
  return key === "" ? "one member" : `one member by ${key}`;
}

export function qualityText(quality: Quality): string {
  return quality === "best_effort" ? "best effort" : quality;
}
