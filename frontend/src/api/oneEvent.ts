import { queryOptions } from "@tanstack/react-query";

import { api, done } from "./client";
import type { components } from "./schema";

export type StoredEvent = components["schemas"]["StoredEvent"];

/** One event; it never changes. */
export function oneEvent(zone: string, stream: string, sequence: number) {
  return queryOptions({ queryKey: ["event", zone, stream, sequence], queryFn: () => readEvent(zone, stream, sequence), staleTime: Infinity });
}

/** Read one event outside of a query. */
export async function readEvent(zone: string, stream: string, sequence: number): Promise<StoredEvent> {
  const path = { stream, sequence: String(sequence) };
  const found = await done(api.GET("/v1/streams/{stream}/events/{sequence}", { params: { path, query: { zone } } }));
  return found as StoredEvent; // other forms are returned only on request
}
