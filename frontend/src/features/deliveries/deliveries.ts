import { useInfiniteQuery, useQuery } from "@tanstack/react-query";

import { api, done } from "../../api/client";
import { PAGING } from "../../api/pages";
import type { components } from "../../api/schema";

export type Delivery = components["schemas"]["Delivery"];
export type OneDelivery = components["schemas"]["OneDelivery"];
export type Attempt = OneDelivery["attempts"][number];

export const STATES = [
  "pending",
  "delivered",
  "dead_lettered",
  "cancelled",
  "dropped",
  "expired",
  "discarded",
] as const;
export type DeliveryState = (typeof STATES)[number];

const INTERVAL_MS = 3_000;

/** States that end a delivery without success: listed for all endpoints together. */
const ENDED: readonly DeliveryState[] = ["dead_lettered", "cancelled", "dropped", "expired", "discarded"];

/** For one endpoint, one event, or all endpoints. */
export interface DeliveryFilter {
  endpoint?: number;
  stream?: string;
  sequence?: number;
  state?: DeliveryState;
}

/** Whether the filter names an endpoint, an event, or all endpoints. */
export function isWhole(filter: DeliveryFilter): boolean {
  return filter.endpoint !== undefined || isOfEvent(filter) || isOfAll(filter);
}

function isOfEvent({ stream, sequence }: DeliveryFilter): boolean {
  return stream !== undefined && sequence !== undefined;
}

/** Whether the filter is for all endpoints. */
export function isOfAll(filter: DeliveryFilter): boolean {
  const { endpoint, state } = filter;
  return endpoint === undefined && !isOfEvent(filter) && state !== undefined && ENDED.includes(state);
}

/** Query deliveries; refreshed while only the newest page is loaded. */
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
