import { useInfiniteQuery, useQuery } from "@tanstack/react-query";

import { api, done } from "../api/client";
import { PAGING } from "../api/pages";
import type { components } from "../api/schema";

export type Delivery = components["schemas"]["Delivery"];
export type OneDelivery = components["schemas"]["OneDelivery"];
export type Try = OneDelivery["tries"][number];

export const STATES = ["pending", "delivered", "dead", "cancelled"] as const;
export type DeliveryState = (typeof STATES)[number];

const INTERVAL_MS = 3_000;

/** Of one endpoint, or of one event. */
export interface DeliveryFilter {
  endpoint?: number;
  stream?: string;
  sequence?: number;
  state?: DeliveryState;
}

export function isWhole({ endpoint, stream, sequence }: DeliveryFilter): boolean {
  return endpoint !== undefined || (stream !== undefined && sequence !== undefined);
}

/** Kept up to date while only the newest page is shown. */
export function useDeliveries(zone: string, filter: DeliveryFilter) {
  return useInfiniteQuery({
    queryKey: ["deliveries", zone, filter],
    queryFn: ({ pageParam }) =>
      done(api.GET("/v1/deliveries", { params: { query: { zone, ...filter, after: pageParam, limit: 100 } } })),
    ...PAGING,
    enabled: isWhole(filter),
    refetchInterval: (query) => (query.state.data?.pages.length === 1 ? INTERVAL_MS : false),
  });
}

export function useDelivery(zone: string, delivery: string) {
  return useQuery({
    queryKey: ["delivery", zone, delivery],
    queryFn: () => done(api.GET("/v1/deliveries/{delivery}", { params: { path: { delivery }, query: { zone } } })),
    refetchInterval: (query) => (query.state.data?.state === "pending" ? INTERVAL_MS : false),
  });
}
