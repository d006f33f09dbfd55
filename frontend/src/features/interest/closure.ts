import { keepPreviousData, queryOptions } from "@tanstack/react-query";

import { readManaged } from "../../api/hot";
import type { components } from "../../api/schema";

export type Closure = components["schemas"]["Closure"];
export type Interest = components["schemas"]["Interest"];

/** The known fields of an event; other fields may have any value. */
export interface Shape {
  domain?: string;
  type?: string;
  attributes?: Record<string, unknown>;
}

const INTERVAL_MS = 3_000;

/** Query the interest in a stream; only of clients in the groups of `audience`, if any. */
export function closureOf(zone: string, stream: string, audience: readonly string[]) {
  return queryOptions({
    queryKey: ["closure", zone, stream, audience],
    queryFn: () => {
      const query = audience.length === 0 ? "" : `?${new URLSearchParams({ audience: audience.join(",") }).toString()}`;
      return readManaged<Closure>(zone, stream, `/v1/streams/${encodeURIComponent(stream)}/closure${query}`);
    },
    refetchInterval: INTERVAL_MS,
    placeholderData: keepPreviousData,
  });
}

/** Return whether a registration would match an event of this shape. */
export function interestIn(zone: string, stream: string, shape: Shape, audience: readonly string[]): Promise<Interest> {
  const body = JSON.stringify({ shape, ...(audience.length === 0 ? {} : { audience }) });
  return readManaged<Interest>(zone, stream, `/v1/streams/${encodeURIComponent(stream)}/interest`, body);
}
