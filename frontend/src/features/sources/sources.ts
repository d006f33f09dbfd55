import { queryOptions, useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";

import { api, done } from "../../api/client";
import { PAGING } from "../../api/pages";
import type { components } from "../../api/schema";
import type { Secret } from "../../parts/SecretOnce";

export type Source = components["schemas"]["Source"];
export type NewSource = components["schemas"]["NewSource"];
export type Sample = components["schemas"]["SourceSample"];
export type Bench = components["schemas"]["SourceTest"];
type Mapping = Record<string, unknown>;

const KIND = "sources";
const REFRESH_MS = 5_000;

export const PROVIDERS: { value: NewSource["provider"]; label: string; options: string }[] = [
  { value: "github", label: "GitHub", options: "" },
  { value: "stripe", label: "Stripe", options: "" },
  { value: "slack", label: "Slack", options: "" },
  { value: "shopify", label: "Shopify", options: "" },
  { value: "twilio", label: "Twilio", options: "" },
  { value: "standard-webhooks", label: "Standard Webhooks", options: "" },
  { value: "hmac", label: "HMAC in a header", options: '{"header": "X-Signature", "algorithm": "sha256", "encoding": "hex", "prefix": ""}' },
  { value: "basic", label: "Basic authentication", options: "" },
  { value: "api-key", label: "API key", options: '{"name": "X-API-Key", "location": "header"}' },
];

export function useSources(zone: string, client: string | undefined) {
  return useInfiniteQuery({
    queryKey: [KIND, zone, "pages", client],
    queryFn: ({ pageParam }) => done(api.GET("/v1/sources", { params: { query: { zone, client, after: pageParam, limit: 100 } } })),
    refetchInterval: REFRESH_MS,
    ...PAGING,
  });
}

export function oneSource(zone: string, id: number) {
  return queryOptions({
    queryKey: [KIND, zone, "one", id],
    queryFn: () => done(api.GET("/v1/sources/{source}", { params: at(zone, id) })),
    refetchInterval: REFRESH_MS,
  });
}

export function useSamples(zone: string, id: number) {
  return useInfiniteQuery({
    queryKey: [KIND, zone, "samples", id],
    queryFn: ({ pageParam }) =>
      done(
        api.GET("/v1/sources/{source}/samples", {
          params: { path: { source: String(id) }, query: { zone, after: pageParam, limit: 100 } },
        }),
      ),
    refetchInterval: REFRESH_MS,
    ...PAGING,
  });
}

export function oneSample(zone: string, id: number, sample: number) {
  return queryOptions({
    queryKey: [KIND, zone, "sample", id, sample],
    queryFn: () =>
      done(
        api.GET("/v1/sources/{source}/samples/{sample}", {
          params: { path: { source: String(id), sample: String(sample) }, query: { zone } },
        }),
      ),
  });
}

export function useCreateSource(zone: string) {
  return useWrite(zone, (body: NewSource) => done(api.POST("/v1/sources", { params: { query: { zone } }, body })));
}

export function useChangeSource(zone: string, id: number) {
  return useWrite(zone, (body: { enabled?: boolean; mapping?: Mapping }) =>
    done(api.PATCH("/v1/sources/{source}", { params: at(zone, id), body })),
  );
}

export function useReplaceUrl(zone: string, id: number) {
  return useWrite(zone, (overlap: number) =>
    done(api.POST("/v1/sources/{source}/url", { params: at(zone, id), body: { overlap_s: overlap } })),
  );
}

export function useReplaceSecret(zone: string, id: number) {
  return useWrite(zone, (body: { secret?: string; overlap_s: number }) =>
    done(api.POST("/v1/sources/{source}/secrets", { params: at(zone, id), body })),
  );
}

export function useDeleteSource(zone: string, id: number) {
  return useWrite(zone, () => done(api.DELETE("/v1/sources/{source}", { params: at(zone, id) })));
}

/** Applies a map to a request; nothing is emitted. */
export function useTryMap(zone: string, id: number) {
  return useMutation({
    mutationFn: (body: Bench) => done(api.POST("/v1/sources/{source}/test", { params: at(zone, id), body })),
  });
}

/** A URL, as it is entered at the provider. */
export function urlOf(path: string): string {
  return location.origin + path;
}

export function shownUrl(path: string): Secret {
  return { name: "URL of the source", about: "The provider posts to it.", text: urlOf(path) };
}

function at(zone: string, id: number) {
  return { path: { source: String(id) }, query: { zone } };
}

function useWrite<Body, Answer>(zone: string, mutationFn: (body: Body) => Promise<Answer>) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn,
    onSuccess: () => void queries.invalidateQueries({ queryKey: [KIND, zone] }),
  });
}
