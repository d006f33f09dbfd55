import { useInfiniteQuery, useQuery } from "@tanstack/react-query";

import { api, done } from "../../api/client";
import { readHot } from "../../api/hot";
import { PAGING } from "../../api/pages";
import type { components } from "../../api/schema";
import type { Cursor, Told } from "../events/frames";

export type StateItem = components["schemas"]["KeyState"];

const LOOKED_EVENTS = 1_000; // of the stream, in one page of a key's history

/** Who has what key, as of one sequence: the hub's snapshot. */
export function useSnapshot(zone: string, stream: string) {
  return useInfiniteQuery({
    queryKey: ["state", zone, stream],
    queryFn: ({ pageParam }) =>
      done(api.GET("/v1/streams/{stream}/state", { params: { path: { stream }, query: { zone, after: pageParam, limit: 200 } } })),
    ...PAGING,
  });
}

export function useKey(zone: string, stream: string, key: string) {
  return useQuery({
    queryKey: ["state", zone, stream, "key", key],
    queryFn: () => done(api.GET("/v1/streams/{stream}/state/{key}", { params: { path: { stream, key }, query: { zone } } })),
    retry: false,
  });
}

interface Answer {
  events: Told[];
  cursor: Cursor;
  first: number;
}

/** The events of one key, the newest first, looked for further and further back in what is held. */
export function useKeyHistory(zone: string, stream: string, key: string) {
  return useInfiniteQuery({
    queryKey: ["history", zone, stream, "key", key],
    queryFn: async ({ pageParam }) => {
      const query = new URLSearchParams({ from: pageParam, order: "backward", limit: String(LOOKED_EVENTS) });
      const answer = await readHot<Answer>(zone, `/v1/streams/${encodeURIComponent(stream)}/events`, query);
      return { ...answer, events: answer.events.filter(({ event }) => event.key === key) };
    },
    initialPageParam: "now",
    getNextPageParam: ({ cursor, first }) => (cursor.sequence >= first ? `${cursor.segment}:${cursor.sequence}` : undefined),
    retry: false,
  });
}
