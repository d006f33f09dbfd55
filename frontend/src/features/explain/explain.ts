import { queryOptions } from "@tanstack/react-query";

import { api, done } from "../../api/client";
import { readHot } from "../../api/hot";
import type { components } from "../../api/schema";
import type { AskedFilter } from "../filters/draft";

/** A part of a filter on one event; its own parts are of the same shape. */
export type Part = Omit<components["schemas"]["Part"], "parts"> & { parts: Part[] };
export type Condition = components["schemas"]["Condition"];
export type Explanation = Omit<components["schemas"]["Explanation"], "tree"> & { tree: Part };
export type Matches = components["schemas"]["EventMatches"];

/** Why a draft holds for a stored event, or why not. */
export function explainedDraft(zone: string, asked: AskedFilter, stream: string, sequence: number) {
  const body = { ...asked, stream, sequence };
  return queryOptions({
    queryKey: ["explain", zone, JSON.stringify(body)],
    queryFn: async () => (await done(api.POST("/v1/filters/explain", { params: { query: { zone } }, body }))) as Explanation,
  });
}

/** Why a registration is told of a stored event, or why not. */
export function explainedRegistration(zone: string, id: number, stream: string, sequence: number) {
  const path = { registration: String(id) };
  return queryOptions({
    queryKey: ["explain", zone, "registration", id, stream, sequence],
    queryFn: async () => {
      const query = { zone, stream, sequence };
      const found = await done(api.GET("/v1/registrations/{registration}/explain", { params: { path, query } }));
      return found as typeof found & Explanation;
    },
    retry: false,
  });
}

/** One part of the registrations that an event matched or nearly did; `after`: the `next` of the part before. */
export async function readMatches(zone: string, stream: string, sequence: number, after: string | undefined): Promise<Matches> {
  const path = `/v1/streams/${encodeURIComponent(stream)}/events/${sequence}/matches`;
  return readHot<Matches>(zone, path, new URLSearchParams(after === undefined ? {} : { after }));
}
