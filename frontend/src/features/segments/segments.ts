import { useInfiniteQuery } from "@tanstack/react-query";

import { api, done } from "../../api/client";
import { readRaw } from "../../api/hot";
import { PAGING } from "../../api/pages";
import type { components } from "../../api/schema";

export type Segment = components["schemas"]["Segment"];

const PAGE = 1_000;
const INTERVAL_MS = 5_000;
const KEPT_MS = 60_000;

/** The oldest first, as the hub lists them. */
export function useSegments(zone: string, stream: string) {
  return useInfiniteQuery({
    queryKey: ["segments", zone, stream],
    queryFn: ({ pageParam }) =>
      done(
        api.GET("/v1/streams/{stream}/segments", {
          params: { path: { stream }, query: { zone, after: pageParam, limit: PAGE } },
        }),
      ),
    ...PAGING,
    refetchInterval: (query) => (query.state.data?.pages.length === 1 ? INTERVAL_MS : false),
  });
}

/** Return `open`, or the tier of a sealed segment. */
export function placeOf({ state, tier }: Segment): string {
  return state === "open" ? "open" : tier;
}

export function countOf({ first, last }: Segment): number {
  return last - first + 1;
}

/** Return the size in bytes; 0 if the API does not report it (it does to operators). */
export function sizeOf({ bytes }: Segment): number {
  return bytes ?? 0;
}

export function canDownload({ state, tier }: Segment): boolean {
  return state === "sealed" && tier !== "dropped";
}

/** Download a sealed segment as stored. */
export async function download(zone: string, stream: string, segment: Segment): Promise<void> {
  const file = URL.createObjectURL(await readRaw(zone, stream, segment.uuid));
  const link = document.createElement("a");
  link.href = file;
  link.download = `${stream}-${segment.first}-${segment.last}.${segment.tier === "archived" ? "parquet" : "pb"}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(file), KEPT_MS); // the browser reads it asynchronously
}
