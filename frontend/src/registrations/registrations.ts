import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";

import { api, done } from "../api/client";
import { PAGING } from "../api/pages";
import type { components } from "../api/schema";
import { ensureClient } from "../clients/clients";

export type Registration = components["schemas"]["Registration"];
export type NewRegistration = components["schemas"]["NewRegistration"] & { client: string };

export interface RegistrationFilter {
  client?: string;
  stream?: string;
  endpoint?: number;
}

export function useRegistrations(zone: string, filter: RegistrationFilter) {
  return useInfiniteQuery({
    queryKey: ["registrations", zone, filter],
    queryFn: ({ pageParam }) =>
      done(api.GET("/v1/registrations", { params: { query: { zone, ...filter, after: pageParam, limit: 100 } } })),
    ...PAGING,
  });
}

/** Makes the client too when it is a new one; gives the secret of an endpoint that was made on the way. */
export function useCreateRegistration(zone: string, clients: readonly string[]) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async (body: NewRegistration) => {
      await ensureClient(zone, body.client, clients);
      const made = await done(api.POST("/v1/registrations", { params: { query: { zone } }, body }));
      return "secret" in made ? made.secret : undefined;
    },
    onSuccess: () => {
      for (const kind of ["registrations", "endpoints", "clients"]) {
        void queries.invalidateQueries({ queryKey: [kind, zone] });
      }
    },
  });
}

export function useDeleteRegistration(zone: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (registration: number) =>
      done(api.DELETE("/v1/registrations/{registration}", { params: { path: { registration: String(registration) }, query: { zone } } })),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["registrations", zone] }),
  });
}
