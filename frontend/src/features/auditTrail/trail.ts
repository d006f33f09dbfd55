import { useInfiniteQuery } from "@tanstack/react-query";

import { type Faults, timeAt } from "../../api/address";
import { api, done } from "../../api/client";
import { PAGING } from "../../api/pages";
import type { components, operations } from "../../api/schema";

export type Act = components["schemas"]["Act"];
type Query = NonNullable<operations["list_who_changed_what_newest_first"]["parameters"]["query"]>;

export type TrailFilter = Omit<Query, "zone" | "after" | "limit">;

export const KINDS = ["operator", "key", "command", "hub"] as const;
const TEXTS = ["operator", "client", "key", "command", "address", "type", "resource", "request_id", "correlation"] as const;

/** Query the acts of the zone, newest first. Pages may be empty and have a next one. */
export function useTrail(zone: string, filter: TrailFilter) {
  return useInfiniteQuery({
    queryKey: ["audit", zone, filter],
    queryFn: ({ pageParam }) => done(api.GET("/v1/audit", { params: { query: { zone, ...filter, after: pageParam, limit: 50 } } })),
    ...PAGING,
  });
}

/** Read the filter from the address. */
export function trailFilterOf(search: URLSearchParams, faults: Faults): TrailFilter {
  const text = search.get("kind") ?? "";
  const kind = KINDS.find((one) => one === text);
  if (text !== "" && kind === undefined) faults.kind = `Not one of ${KINDS.join(", ")}.`;
  const texts = Object.fromEntries(TEXTS.map((name) => [name, search.get(name) || undefined]));
  const times = { since: timeAt(search, "since", faults), until: timeAt(search, "until", faults) };
  return { kind, ...texts, ...times, all_zones: search.get("all_zones") === "true" ? true : undefined };
}

/** Return the address of a filter, with the act that is open. */
export function searchOf(filter: TrailFilter, act?: string): URLSearchParams {
  const given = Object.entries({ ...filter, act }).filter(([, value]) => value !== undefined && value !== "");
  return new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
}

/** The caller of an act, in a few words. */
export function callerOf({ by }: Act): string {
  switch (by.kind) {
    case "operator":
      return by.operator ?? "";
    case "key":
      return `${by.client ?? ""}, ${by.session === undefined ? "" : `session ${by.session}, `}key ${by.key ?? ""}`;
    case "command":
      return `manage.py ${by.command ?? ""}`;
    default:
      return "the hub";
  }
}
