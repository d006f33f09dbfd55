import { useQuery } from "@tanstack/react-query";

import { readHot } from "../../api/hot";
import type { DeliveredEvent } from "../events/frames";

const LOOKED_AT = 50; // events
const NAMES_MAX = 12;
const DEPTH_MAX = 4;

/** Query the attribute paths of a stream's newest events, most frequent first. */
export function useNames(zone: string, stream: string | undefined): string[] {
  const { data = [] } = useQuery({
    queryKey: ["names", zone, stream],
    queryFn: () => readNames(zone, stream ?? ""),
    enabled: stream !== undefined,
    staleTime: 30_000,
    retry: false,
  });
  return data;
}

async function readNames(zone: string, stream: string): Promise<string[]> {
  const query = new URLSearchParams({ from: "now", order: "backward", limit: String(LOOKED_AT) });
  const answer = await readHot<{ events: DeliveredEvent[] }>(zone, `/v1/streams/${encodeURIComponent(stream)}/events`, query);
  const counts = new Map<string, number>();
  for (const { event } of answer.events) {
    for (const path of pathsOf(event.attributes ?? {}, "", 1)) counts.set(path, (counts.get(path) ?? 0) + 1);
  }
  const found = [...counts].sort(([a, one], [b, two]) => two - one || a.localeCompare(b));
  return found.slice(0, NAMES_MAX).map(([path]) => path);
}

function* pathsOf(attributes: Record<string, unknown>, above: string, depth: number): Generator<string> {
  for (const [name, value] of Object.entries(attributes)) {
    const path = above + name;
    if (typeof value === "object" && value !== null && !Array.isArray(value) && !("rawJSON" in value) && depth < DEPTH_MAX) {
      yield* pathsOf(value as Record<string, unknown>, `${path}.`, depth + 1);
    } else {
      yield path;
    }
  }
}
