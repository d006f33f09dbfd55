import { queryOptions, useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";

import { api, done, ifMatch, loaded } from "../../api/client";
import { PAGING } from "../../api/pages";
import type { components } from "../../api/schema";

export type RegistrationGroup = components["schemas"]["Group"];
type NewGroup = components["schemas"]["NewGroup"] & { client: string };

const KIND = "registration-groups";

export function useGroups(zone: string, client: string | undefined) {
  return useInfiniteQuery({
    queryKey: [KIND, zone, "pages", client],
    queryFn: ({ pageParam }) =>
      done(api.GET("/v1/registration-groups", { params: { query: { zone, client, after: pageParam, limit: 100 } } })),
    ...PAGING,
  });
}

/** Query the zone's groups, at most the first thousand. */
export function useGroupsOfZone(zone: string) {
  return useQuery({
    queryKey: [KIND, zone, "all"],
    queryFn: async () => (await done(api.GET("/v1/registration-groups", { params: { query: { zone, limit: 1000 } } }))).items,
    staleTime: 5_000,
  });
}

export function oneGroup(zone: string, id: number) {
  return queryOptions({
    queryKey: [KIND, zone, "one", id],
    queryFn: () => loaded(api.GET("/v1/registration-groups/{group}", { params: at(zone, id) })),
  });
}

export function useCreateGroup(zone: string) {
  return useWrite(zone, (body: NewGroup) => done(api.POST("/v1/registration-groups", { params: { query: { zone } }, body })));
}

/** Fails with 412 if it has changed since it was loaded with `etag`. */
export function useSuspendGroup(zone: string, id: number, etag?: string) {
  return useWrite(zone, (suspended: boolean) =>
    done(api.PATCH("/v1/registration-groups/{group}", { params: at(zone, id), headers: ifMatch(etag), body: { suspended } })),
  );
}

export function useDeleteGroup(zone: string, id: number) {
  return useWrite(zone, () => done(api.DELETE("/v1/registration-groups/{group}", { params: at(zone, id) })));
}

function at(zone: string, id: number) {
  return { path: { group: String(id) }, query: { zone } };
}

function useWrite<Body, Answer>(zone: string, mutationFn: (body: Body) => Promise<Answer>) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn,
    onSuccess: () => {
      for (const kind of [KIND, "clients", "explain"]) void queries.invalidateQueries({ queryKey: [kind, zone] });
    },
  });
}
