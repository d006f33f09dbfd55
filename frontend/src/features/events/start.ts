import { readEvent } from "../../api/oneEvent";
import type { From, Wish } from "./frames";

/**
 * Where to begin. A bare sequence becomes a cursor, which names the segment of the event before it; a Problem `gap`
 * when that one is no longer held.
 */
export async function startOf({ zone, stream, from }: Wish): Promise<From> {
  if (typeof from !== "number") return from;
  if (from <= 1) return "oldest";
  const before = await readEvent(zone, stream, from - 1);
  return { segment: before.segment, sequence: from - 1 };
}
