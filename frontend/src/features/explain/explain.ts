import { queryOptions } from "@tanstack/react-query";

import { api, done } from "../../api/client";
import { readHot } from "../../api/hot";
import type { components } from "../../api/schema";
import type { FilterRequest } from "../filters/draft";

/** A part of a filter on one event; its own parts are of the same shape. */
export type Part = Omit<components["schemas"]["Part"], "parts"> & { parts: Part[] };
export type Condition = components["schemas"]["Condition"];
export type Explanation = Omit<components["schemas"]["Explanation"], "tree"> & { tree: Part };
export type Matches = components["schemas"]["EventMatches"];

/** Query why a draft matches a stored event, or why not. */
export function explainedDraft(zone: string, request: FilterRequest, stream: string, sequence: number) {
  const body = { ...request, stream, sequence };
  return queryOptions({
    queryKey: ["explain", zone, JSON.stringify(body)],
    queryFn: async () => (await done(api.POST("/v1/filters/explain", { params: { query: { zone } }, body }))) as Explanation,
  });
}

/** Query why a registration matches a stored event, or why not. */
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

/** Read one page of the registrations that an event matched or nearly matched; `after`: the `next` of the previous page. */
export async function readMatches(zone: string, stream: string, sequence: number, after: string | undefined): Promise<Matches> {
  const path = `/v1/streams/${encodeURIComponent(stream)}/events/${sequence}/matches`;
  return readHot<Matches>(zone, path, new URLSearchParams(after === undefined ? {} : { after }));
}
