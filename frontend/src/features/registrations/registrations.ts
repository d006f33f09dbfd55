import { queryOptions, useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";

import { api, done, ifMatch, loaded } from "../../api/client";
import { PAGING } from "../../api/pages";
import type { components } from "../../api/schema";

export type Registration = components["schemas"]["Registration"];
export type RegistrationChange = components["schemas"]["PatchedRegistrationChange"];
export type NewRegistration = components["schemas"]["NewRegistration"] & { client: string };

export interface RegistrationFilter {
  client?: string;
  stream?: string;
  endpoint?: number;
  group?: string;
  session?: string;
  session_group?: string;
  suspended?: boolean;
  key?: string; // assigned by its client
}

export function useRegistrations(zone: string, filter: RegistrationFilter) {
  return useInfiniteQuery({
    queryKey: ["registrations", zone, filter],
    queryFn: ({ pageParam }) =>
      done(api.GET("/v1/registrations", { params: { query: { zone, ...filter, after: pageParam, limit: 100 } } })),
    ...PAGING,
  });
}

export function oneRegistration(zone: string, id: number) {
  return queryOptions({
    queryKey: ["registrations", zone, "one", id],
    queryFn: () => loaded(api.GET("/v1/registrations/{registration}", { params: at(zone, id) })),
  });
}

/** Create a registration; the result has the secret if an endpoint was created. */
export function useCreateRegistration(zone: string) {
  const refresh = useRefresh(zone);
  return useMutation({
    mutationFn: async (body: NewRegistration) => {
      const made = await done(api.POST("/v1/registrations", { params: { query: { zone } }, body }));
      return "secret" in made ? made.secret : undefined;
    },
    onSuccess: refresh,
  });
}

/** Fails with 412 if it has changed since it was loaded with `etag`. */
export function useChangeRegistration(zone: string, id: number, etag: string | undefined) {
  const refresh = useRefresh(zone);
  return useMutation({
    mutationFn: (body: RegistrationChange) =>
      done(api.PATCH("/v1/registrations/{registration}", { params: at(zone, id), headers: ifMatch(etag), body })),
    onSuccess: refresh,
  });
}

export function useDeleteRegistration(zone: string, id: number) {
  const refresh = useRefresh(zone);
  return useMutation({
    mutationFn: () => done(api.DELETE("/v1/registrations/{registration}", { params: at(zone, id) })),
    onSuccess: refresh,
  });
}

function at(zone: string, id: number) {
  return { path: { registration: String(id) }, query: { zone } };
}

function useRefresh(zone: string) {
  const queries = useQueryClient();
  return () => {
    for (const kind of ["registrations", "registration-groups", "endpoints", "clients", "explain"]) {
      void queries.invalidateQueries({ queryKey: [kind, zone] });
    }
  };
}
