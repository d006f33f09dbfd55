import { queryOptions, useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";

import { api, done, ifMatch, loaded } from "../../api/client";
import { PAGING } from "../../api/pages";
import type { components } from "../../api/schema";

export type Stream = components["schemas"]["Stream"];
export type PolicyChange = components["schemas"]["Policy"];
export type Policy = Required<PolicyChange>;

const INTERVAL_MS = 3_000;

/** The names of the zone's streams, `system` last; at most the first thousand. */
export function useStreamNames(zone: string) {
  return useQuery({
    queryKey: ["streams", zone, "names"],
    queryFn: async () => {
      const page = await done(api.GET("/v1/streams", { params: { query: { zone, limit: 1000 } } }));
      const names = page.items.map((stream) => stream.name).filter((name) => name !== "system");
      return [...names, "system"];
    },
    staleTime: 10_000,
  });
}

/** Kept up to date while only the first page is shown. */
export function useStreams(zone: string) {
  return useInfiniteQuery({
    queryKey: ["streams", zone, "pages"],
    queryFn: ({ pageParam }) => done(api.GET("/v1/streams", { params: { query: { zone, after: pageParam, limit: 100 } } })),
    ...PAGING,
    refetchInterval: (query) => (query.state.data?.pages.length === 1 ? INTERVAL_MS : false),
  });
}

export function oneStream(zone: string, name: string) {
  return queryOptions({
    queryKey: ["streams", zone, "one", name],
    queryFn: () => loaded(api.GET("/v1/streams/{stream}", { params: at(zone, name) })),
  });
}

/** Makes a stream, or changes its policy; with `etag` only if nobody has changed it since. */
export function usePutStream(zone: string, etag?: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ name, policy }: { name: string; policy: PolicyChange }) =>
      done(api.PUT("/v1/streams/{stream}", { params: at(zone, name), headers: ifMatch(etag), body: policy })),
    onSuccess: () => {
      for (const kind of ["streams", "overview"]) void queries.invalidateQueries({ queryKey: [kind, zone] });
    },
  });
}

function at(zone: string, name: string) {
  return { path: { stream: name }, query: { zone } };
}
