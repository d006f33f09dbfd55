import { queryOptions, useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";

import { api, done, ifMatch, loaded } from "../../api/client";
import { PAGING } from "../../api/pages";
import type { components } from "../../api/schema";
import type { Secret } from "../../parts/SecretOnce";

export type Endpoint = components["schemas"]["Endpoint"];
export type EndpointChange = components["schemas"]["PatchedEndpointChange"];
export type NewEndpoint = components["schemas"]["NewEndpoint"] & { client: string };
/** Of a sink no request is signed. */
export type NewSink = Omit<NewEndpoint, "signature">;
export type Authentication = components["schemas"]["Authentication"];
export type Certificate = components["schemas"]["Certificate"];

const INTERVAL_MS = 5_000;

/** Query endpoints; refreshed while only the first page is loaded. */
export function useEndpoints(zone: string) {
  return useInfiniteQuery({
    queryKey: ["endpoints", zone, "pages"],
    queryFn: ({ pageParam }) =>
      done(api.GET("/v1/endpoints", { params: { query: { zone, after: pageParam, limit: 100 } } })),
    ...PAGING,
    refetchInterval: (query) => (query.state.data?.pages.length === 1 ? INTERVAL_MS : false),
  });
}

/** For choosing one: at most the first thousand, of a client or of the whole zone. */
export function useEndpointChoice(zone: string, client: string | undefined) {
  return useQuery({
    queryKey: ["endpoints", zone, "choice", client],
    queryFn: () => done(api.GET("/v1/endpoints", { params: { query: { zone, client, limit: 1000 } } })),
    enabled: client !== "",
    retry: false, // an unknown client has none
  });
}

export function oneEndpoint(zone: string, id: number) {
  return queryOptions({
    queryKey: ["endpoints", zone, "one", id],
    queryFn: () => loaded(api.GET("/v1/endpoints/{endpoint}", { params: at(zone, id) })),
    refetchInterval: INTERVAL_MS,
  });
}

export function useCreateEndpoint(zone: string) {
  const refresh = useRefresh(zone);
  return useMutation({
    mutationFn: (body: NewEndpoint | NewSink) =>
      done(api.POST("/v1/endpoints", { params: { query: { zone } }, body: body as NewEndpoint })),
    onSuccess: refresh,
  });
}

/** Fails with 412 if `etag` is given and the endpoint has changed since. */
export function useChangeEndpoint(zone: string, id: number, etag?: string) {
  const refresh = useRefresh(zone);
  return useMutation({
    mutationFn: (body: EndpointChange) =>
      done(api.PATCH("/v1/endpoints/{endpoint}", { params: at(zone, id), headers: ifMatch(etag), body })),
    onSuccess: refresh,
  });
}

export function useDeleteEndpoint(zone: string, id: number) {
  const refresh = useRefresh(zone);
  return useMutation({
    mutationFn: () => done(api.DELETE("/v1/endpoints/{endpoint}", { params: at(zone, id) })),
    onSuccess: refresh,
  });
}

/** Ask the receiver again; a worker does, and the endpoint then has the result. */
export function useVerifyEndpoint(zone: string, id: number) {
  const refresh = useRefresh(zone);
  return useMutation({
    mutationFn: () => done(api.POST("/v1/endpoints/{endpoint}/verify", { params: at(zone, id) })),
    onSuccess: refresh,
  });
}

export function at(zone: string, id: number) {
  return { path: { endpoint: String(id) }, query: { zone } };
}

export function useRefresh(zone: string) {
  const queries = useQueryClient();
  return () =>
    Promise.all(["endpoints", "clients"].map((kind) => queries.invalidateQueries({ queryKey: [kind, zone] })));
}

export const FORMATS = [
  { value: "native", label: "EventHub's own JSON" },
  { value: "cloudevents_structured", label: "CloudEvents 1.0, structured" },
  { value: "cloudevents_binary", label: "CloudEvents 1.0, binary" },
  { value: "mcp", label: "MCP Events, an occurrence" },
] as const;

export const SIGNATURES = [
  { value: "v1", label: "v1: HMAC-SHA256 with a shared secret" },
  { value: "v1a", label: "v1a: Ed25519, verified with a public key" },
  { value: "both", label: "both" },
] as const;

export const HANDSHAKES = [
  { value: "none", label: "none" },
  { value: "cloudevents", label: "CloudEvents: an OPTIONS request" },
  { value: "challenge", label: "a challenge that the receiver echoes" },
  { value: "mcp", label: "the challenge of MCP Events" },
] as const;

/** The handshake of sinks. */
export const CHECK = { value: "check", label: "the hub checks that everything is there" } as const;

/** The path of an endpoint's page in its zone. */
export function endpointPath(id: number, tab = ""): string {
  return `endpoints/${id}${tab === "" ? "" : `/${tab}`}`;
}

export function secretOf(text: string): Secret {
  const about = "Receivers check the signature of every callback with it (Standard Webhooks).";
  return { name: "endpoint's secret", about, text };
}

/** How an attempt ended: `status 500`, `timeout`. */
export function outcomeOf({ outcome, status }: { outcome: string | null; status: number | null }): string {
  const words = outcome?.replaceAll("_", " ") ?? "";
  return status === null ? words : `${outcome === "status" ? "status" : words} ${status}`;
}
