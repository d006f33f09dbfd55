import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";

import { api, done } from "../../api/client";
import { PAGING } from "../../api/pages";
import type { components } from "../../api/schema";

export type Member = components["schemas"]["Member"];
export type ConnectedClient = components["schemas"]["Presence"];
export type Monitoring = components["schemas"]["Monitoring"];

export const TRACES = "eventhub.traces"; // the stream of the zone's API calls
const REFRESH_MS = 5_000;

export function useMembers() {
  return useInfiniteQuery({
    queryKey: ["members"],
    queryFn: () => done(api.GET("/v1/members")),
    refetchInterval: REFRESH_MS,
    ...PAGING,
  });
}

export function usePresence(zone: string) {
  return useInfiniteQuery({
    queryKey: ["presence", zone],
    queryFn: ({ pageParam }) => done(api.GET("/v1/presence", { params: { query: { zone, after: pageParam, limit: 100 } } })),
    refetchInterval: REFRESH_MS,
    ...PAGING,
  });
}

export function useMonitoring(zone: string) {
  return useQuery({
    queryKey: ["monitoring", zone],
    queryFn: () => done(api.GET("/v1/monitoring", { params: { query: { zone } } })),
  });
}

export function useSwitchMonitoring(zone: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (body: Partial<Monitoring>) => done(api.PATCH("/v1/monitoring", { params: { query: { zone } }, body })),
    onSuccess: (now) => {
      queries.setQueryData(["monitoring", zone], now);
      void queries.invalidateQueries({ queryKey: ["streams", zone] });
    },
  });
}
