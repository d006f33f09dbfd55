import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";

import { api, done } from "../../api/client";
import { PAGING } from "../../api/pages";
import type { components } from "../../api/schema";

export type Delivery = components["schemas"]["Delivery"];
export type OneDelivery = components["schemas"]["OneDelivery"];
export type Attempt = OneDelivery["attempts"][number];
export type ExampleRequest = components["schemas"]["ExampleRequest"];

/** States that end a delivery without success: listed for all endpoints together. */
export const ENDED = ["dead_lettered", "dropped", "cancelled", "expired", "discarded"] as const;
/** States in which a recovery run can find deliveries. */
export const RECOVERABLE = ["dead_lettered", "dropped", "cancelled"] as const;
export const STATES = ["pending", "delivered", ...ENDED] as const;
export type RecoverableState = (typeof RECOVERABLE)[number];
export type EndedState = (typeof ENDED)[number];
export type DeliveryState = (typeof STATES)[number];

/** The outcomes of failed attempts, and that of dead letters without an attempt. */
export const OUTCOMES = [
  ...["status", "redirect", "timeout", "connection", "tls", "unknown_host", "refused_address"],
  ...["protocol", "token_unavailable", "unreadable", "internal", "withheld"],
] as const;

const INTERVAL_MS = 3_000;

/** The fields that are unnecessary, and refused, if a sequence is given. */
export const SELECTING = ["client", "outcome", "status", "type", "event", "since", "until"] as const;

export interface DeliveryFilter {
  endpoint?: number;
  stream?: string;
  sequence?: number; // of an event of the stream
  state?: DeliveryState;
  client?: string;
  outcome?: string; // of the last attempt
  status?: number; // of the last response
  type?: string; // of the event
  event?: string; // id of the event
  since?: string; // written then or later, RFC 3339
  until?: string;
}

/** Removes the fields that do not apply to one event. */
export const UNSELECTED = Object.fromEntries(SELECTING.map((name) => [name, undefined])) as Record<(typeof SELECTING)[number], undefined>;
/** Removes every field. */
export const CLEARED = { ...UNSELECTED, endpoint: undefined, stream: undefined, sequence: undefined, state: undefined } satisfies Record<keyof DeliveryFilter, undefined>;

/** Whether the filter decides what is examined: an endpoint, a stream, or a state of all endpoints. */
export function isWhole({ endpoint, stream, state }: DeliveryFilter): boolean {
  return endpoint !== undefined || stream !== undefined || isEnded(state);
}

export function isEnded(state: DeliveryState | undefined): state is EndedState {
  return (ENDED as readonly unknown[]).includes(state);
}

export function isRecoverable(state: DeliveryState | undefined): state is RecoverableState {
  return (RECOVERABLE as readonly unknown[]).includes(state);
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
    queryFn: () => done(api.GET("/v1/deliveries/{delivery}", { params: at(zone, delivery) })),
    refetchInterval: (query) => (query.state.data?.state === "pending" ? INTERVAL_MS : false),
  });
}

export interface ResendOptions {
  force: boolean; // also if it was delivered or the event has expired
  new_id: boolean;
}

export function useResend(zone: string, delivery: string) {
  const refresh = useRefresh(zone);
  return useMutation({
    mutationFn: (body: ResendOptions) => done(api.POST("/v1/deliveries/{delivery}/resend", { params: at(zone, delivery), body })),
    onSuccess: refresh,
  });
}

/** Send an example of a type to an endpoint; the answer is its delivery. */
export function useSendExample(zone: string, endpoint: number) {
  const refresh = useRefresh(zone);
  return useMutation({
    mutationFn: (body: ExampleRequest) => done(api.POST("/v1/endpoints/{endpoint}/examples", { params: { path: { endpoint: String(endpoint) }, query: { zone } }, body })),
    onSuccess: refresh,
  });
}

/** Set a delivery aside: `skip` one that is pending, `discard` one that has ended without success. */
export function useSetAside(zone: string, delivery: string, action: "skip" | "discard") {
  const refresh = useRefresh(zone);
  return useMutation({
    mutationFn: () => done(api.POST(`/v1/deliveries/{delivery}/${action}`, { params: at(zone, delivery) })),
    onSuccess: refresh,
  });
}

function at(zone: string, delivery: string) {
  return { path: { delivery }, query: { zone } };
}

function useRefresh(zone: string) {
  const queries = useQueryClient();
  return () =>
    Promise.all(["delivery", "deliveries", "dead-letters", "overview"].map((kind) => queries.invalidateQueries({ queryKey: [kind, zone] })));
}
