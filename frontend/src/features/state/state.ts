import { useInfiniteQuery, useQuery } from "@tanstack/react-query";

import { api, done } from "../../api/client";
import { readHot } from "../../api/hot";
import { PAGING } from "../../api/pages";
import type { components } from "../../api/schema";
import type { Cursor, DeliveredEvent } from "../events/frames";

export type StateItem = components["schemas"]["KeyState"];

const LOOKED_EVENTS = 1_000; // of the stream, in one page of a key's history

/** Query the snapshot of a keyed stream: the latest event of each key, as of one sequence. */
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
  events: DeliveredEvent[];
  cursor: Cursor;
  first: number;
}

/** Query the events of one key, newest first, page by page back to the first retained event. */
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
