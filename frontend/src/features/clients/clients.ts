import { queryOptions, useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";

import { api, done, ifMatch, loaded } from "../../api/client";
import { PAGING } from "../../api/pages";
import type { components } from "../../api/schema";

export type Client = components["schemas"]["Client"];
export type Key = components["schemas"]["Key"];
export type Listener = components["schemas"]["Listener"];
export type Grant = components["schemas"]["Grant"];
export type NewKey = components["schemas"]["NewKey"];
export type KeyChange = components["schemas"]["PatchedKeyChange"];

/** The names of the zone's clients, at most the first thousand; `whole`: these are all. */
export function useClientNames(zone: string) {
  return useQuery({
    queryKey: ["clients", zone, "names"],
    queryFn: async () => {
      const page = await done(api.GET("/v1/clients", { params: { query: { zone, limit: 1000 } } }));
      return { names: page.items.map((client) => client.name), whole: page.next === null };
    },
    staleTime: 10_000,
  });
}

export function useClients(zone: string) {
  return useInfiniteQuery({
    queryKey: ["clients", zone, "pages"],
    queryFn: ({ pageParam }) => done(api.GET("/v1/clients", { params: { query: { zone, after: pageParam, limit: 100 } } })),
    ...PAGING,
  });
}

/** Query a client's keys, including ended ones. */
export function useKeys(zone: string, client: string) {
  return useInfiniteQuery({
    queryKey: ["clients", zone, "keys", client],
    queryFn: ({ pageParam }) =>
      done(
        api.GET("/v1/clients/{client}/keys", {
          params: { path: { client }, query: { zone, after: pageParam, limit: 100 } },
        }),
      ),
    ...PAGING,
  });
}

/** The listeners of a client, newest first. */
export function useListeners(zone: string, client: string) {
  return useInfiniteQuery({
    queryKey: ["clients", zone, "listeners", client],
    queryFn: ({ pageParam }) =>
      done(
        api.GET("/v1/clients/{client}/listeners", {
          params: { path: { client }, query: { zone, after: pageParam, limit: 20 } },
        }),
      ),
    ...PAGING,
  });
}

export function oneClient(zone: string, client: string) {
  return queryOptions({
    queryKey: ["clients", zone, "one", client],
    queryFn: () => loaded(api.GET("/v1/clients/{client}", { params: { path: { client }, query: { zone } } })),
  });
}

export function useCreateClient(zone: string) {
  return useWrite(zone, (body: { name: string; groups: string[] }) => done(api.POST("/v1/clients", { params: { query: { zone } }, body })));
}

/** Fails with 412 if it has changed since it was loaded with `etag`. */
export function useChangeClient(zone: string, client: string, etag: string | undefined) {
  return useWrite(zone, (groups: string[]) =>
    done(api.PATCH("/v1/clients/{client}", { params: { path: { client }, query: { zone } }, headers: ifMatch(etag), body: { groups } })),
  );
}

export function useDeleteClient(zone: string, client: string) {
  return useWrite(zone, () => done(api.DELETE("/v1/clients/{client}", { params: { path: { client }, query: { zone } } })));
}

export function useCreateKey(zone: string, client: string) {
  return useWrite(zone, (body: NewKey) =>
    done(api.POST("/v1/clients/{client}/keys", { params: { path: { client }, query: { zone } }, body })),
  );
}

export function useChangeKey(zone: string, id: string) {
  return useWrite(zone, (body: KeyChange) =>
    done(api.PATCH("/v1/keys/{public_id}", { params: { path: { public_id: id }, query: { zone } }, body })),
  );
}

export function useRevokeKey(zone: string, id: string) {
  return useWrite(zone, () => done(api.DELETE("/v1/keys/{public_id}", { params: { path: { public_id: id }, query: { zone } } })));
}

function useWrite<Body, Answer>(zone: string, mutationFn: (body: Body) => Promise<Answer>) {
  const queries = useQueryClient();
  return useMutation({ mutationFn, onSuccess: () => queries.invalidateQueries({ queryKey: ["clients", zone] }) });
}
