import { useInfiniteQuery } from "@tanstack/react-query";

import { api, done } from "../../api/client";
import { PAGING } from "../../api/pages";
import type { components } from "../../api/schema";
import type { EndedState } from "../deliveries/deliveries";

export type DeadLetterGroup = components["schemas"]["DeadLetterGroup"];

export interface DeadLetterFilter {
  endpoint?: number;
  client?: string;
  stream?: string;
  state?: EndedState; // dead-lettered if not given
}

const INTERVAL_MS = 5_000;

/** Query groups of dead letters, the largest first; refreshed while only the first page is loaded. */
export function useDeadLetters(zone: string, filter: DeadLetterFilter) {
  return useInfiniteQuery({
    queryKey: ["dead-letters", zone, filter],
    queryFn: ({ pageParam }) => done(api.GET("/v1/dead-letters", { params: { query: { zone, ...filter, after: pageParam, limit: 100 } } })),
    ...PAGING,
    select: ({ pages }) => ({ pages: [{ items: merged(pages.flatMap(({ items }) => items)), next: pages.at(-1)?.next ?? null }] }),
    refetchInterval: ({ state: { data } }) => (data?.pages.length === 1 ? INTERVAL_MS : false),
  });
}

export function keyOf({ endpoint, outcome, status }: DeadLetterGroup): string {
  return `${endpoint} ${outcome ?? ""} ${status ?? ""}`;
}

/** Pages count different deliveries, so the counts of a group add up. */
function merged(groups: DeadLetterGroup[]): DeadLetterGroup[] {
  const found = new Map<string, DeadLetterGroup>();
  for (const group of groups) {
    const newer = found.get(keyOf(group));
    found.set(keyOf(group), newer === undefined ? group : sum(newer, group));
  }
  return [...found.values()].sort((a, b) => b.deliveries - a.deliveries);
}

function sum(a: DeadLetterGroup, b: DeadLetterGroup): DeadLetterGroup {
  const [first, last] = [a.first_at < b.first_at ? a : b, a.last_at > b.last_at ? a : b];
  return { ...a, deliveries: a.deliveries + b.deliveries, first_at: first.first_at, last_at: last.last_at };
}
