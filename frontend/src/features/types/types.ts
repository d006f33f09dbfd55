import { queryOptions, useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";

import { api, done, ifMatch, loaded } from "../../api/client";
import { PAGING } from "../../api/pages";
import type { components } from "../../api/schema";

export type EventType = components["schemas"]["Type"]; // as it is listed
export type Definition = components["schemas"]["Definition"]; // a version of it
export type Declaration = components["schemas"]["Declaration"];

/** What a type is called; both parts are foreign texts. */
export interface TypeName {
  domain: string;
  type: string;
}

export function useTypes(zone: string) {
  return useInfiniteQuery({
    queryKey: ["types", zone, "pages"],
    queryFn: ({ pageParam }) => done(api.GET("/v1/types", { params: { query: { zone, after: pageParam, limit: 100 } } })),
    ...PAGING,
  });
}

export function newestType(zone: string, name: TypeName) {
  return queryOptions({
    queryKey: ["types", zone, "newest", name.domain, name.type],
    queryFn: () => loaded(api.GET("/v1/types/{domain}/{type}", { params: { path: { ...name }, query: { zone } } })),
  });
}

export function typeVersion(zone: string, name: TypeName, version: string) {
  return queryOptions({
    queryKey: ["types", zone, "version", name.domain, name.type, version],
    queryFn: () =>
      done(
        api.GET("/v1/types/{domain}/{type}/{version}", {
          params: { path: { ...name, version }, query: { zone } },
        }),
      ),
    staleTime: Infinity, // a version never changes
  });
}

/** Declares a type, or a new version of it. */
export function useDeclare(zone: string, etag?: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ name, declaration }: { name: TypeName; declaration: Declaration }) =>
      done(
        api.PUT("/v1/types/{domain}/{type}", {
          params: { path: { ...name }, query: { zone } },
          headers: ifMatch(etag),
          body: declaration,
        }),
      ),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["types", zone] }),
  });
}

export function typePath({ domain, type }: TypeName): string {
  return `types/${encodeURIComponent(domain)}/${encodeURIComponent(type)}`;
}
