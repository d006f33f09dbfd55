import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";

import { api, done } from "../api/client";
import { PAGING } from "../api/pages";
import type { components } from "../api/schema";
import { ensureClient } from "../clients/clients";

export type Endpoint = components["schemas"]["Endpoint"];
export type NewEndpoint = components["schemas"]["NewEndpoint"] & { client: string };
export type EndpointChange = components["schemas"]["PatchedEndpointChange"];

export function useEndpoints(zone: string) {
  return useInfiniteQuery({
    queryKey: ["endpoints", zone, "pages"],
    queryFn: ({ pageParam }) =>
      done(api.GET("/v1/endpoints", { params: { query: { zone, after: pageParam, limit: 100 } } })),
    ...PAGING,
  });
}

/** For choosing one: at most the first thousand, of a client or of the whole zone. */
export function useEndpointChoice(zone: string, client: string | undefined) {
  return useQuery({
    queryKey: ["endpoints", zone, "choice", client],
    queryFn: () => done(api.GET("/v1/endpoints", { params: { query: { zone, client, limit: 1000 } } })),
    enabled: client !== "",
    retry: false, // a client that is not made yet has none
  });
}

export function useCreateEndpoint(zone: string, clients: readonly string[]) {
  const refresh = useRefresh(zone);
  return useMutation({
    mutationFn: async (body: NewEndpoint) => {
      await ensureClient(zone, body.client, clients);
      return done(api.POST("/v1/endpoints", { params: { query: { zone } }, body }));
    },
    onSuccess: refresh,
  });
}

export function useChangeEndpoint(zone: string) {
  const refresh = useRefresh(zone);
  return useMutation({
    mutationFn: ({ id, ...body }: EndpointChange & { id: number }) =>
      done(api.PATCH("/v1/endpoints/{endpoint}", { params: { path: { endpoint: String(id) }, query: { zone } }, body })),
    onSuccess: refresh,
  });
}

export function useDeleteEndpoint(zone: string) {
  const refresh = useRefresh(zone);
  return useMutation({
    mutationFn: (id: number) =>
      done(api.DELETE("/v1/endpoints/{endpoint}", { params: { path: { endpoint: String(id) }, query: { zone } } })),
    onSuccess: refresh,
  });
}

function useRefresh(zone: string) {
  const queries = useQueryClient();
  return () =>
    Promise.all(["endpoints", "clients"].map((kind) => queries.invalidateQueries({ queryKey: [kind, zone] })));
}
