import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";

import { api, done } from "../../api/client";
import type { components } from "../../api/schema";
import { BYTES, COUNT, type Unit } from "../../parts/AmountInput";
import { bytes, whole } from "../../parts/text";

type Kind = keyof components["schemas"]["ZoneLimits"];
export type Limit = components["schemas"]["Limit"];
export type Limits = Partial<Record<Kind, Limit>>;
export type Quotas = Partial<Record<Kind, number | null>>;

/** What a quota bounds. */
export interface Bounded {
  kind: Kind;
  label: string;
  beyond: string;
  units: readonly Unit[];
}

const INTERVAL_MS = 2_000;

/** All kinds, in the order in which they are shown. */
export const BOUNDED: readonly Bounded[] = [
  { kind: "events_per_s", label: "Events per second", beyond: "emits are refused (429)", units: COUNT },
  { kind: "stored_bytes", label: "Stored bytes", beyond: "emits are refused (507)", units: BYTES },
  { kind: "sockets", label: "Sockets", beyond: "connections are refused (429)", units: COUNT },
  { kind: "registrations", label: "Registrations", beyond: "new ones are refused (409)", units: COUNT },
  { kind: "endpoints", label: "Endpoints", beyond: "new ones are refused (409)", units: COUNT },
  { kind: "timers", label: "Timers", beyond: "new ones are refused (409)", units: COUNT },
  { kind: "patterns", label: "Patterns", beyond: "new ones are refused (409)", units: COUNT },
  { kind: "backlog_events", label: "Pending deliveries", beyond: "the oldest are dropped", units: COUNT },
  { kind: "backlog_bytes", label: "Bytes of pending deliveries", beyond: "the oldest are dropped", units: BYTES },
];

export function amount({ units }: Bounded, value: number): string {
  return units === BYTES ? bytes(value) : whole(value);
}

/** Query the limits of a client, or without one of the zone as a whole. */
export function useLimits(zone: string, client?: string) {
  return useQuery({
    queryKey: ["limits", zone, client ?? ""],
    queryFn: async (): Promise<Limits> => {
      const found = await done(api.GET("/v1/limits", { params: { query: { zone, client } } }));
      return (client === undefined ? found.zone : found.client) ?? {};
    },
    refetchInterval: INTERVAL_MS,
  });
}

export function useSetQuotas(zone: string, client?: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (quotas: Quotas) => done(api.PUT("/v1/limits", { params: { query: { zone, client } }, body: quotas })),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["limits", zone] }),
  });
}
