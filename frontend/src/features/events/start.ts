import { readEvent } from "../../api/oneEvent";
import type { From, ListenRequest } from "./frames";

/**
 * Return the start of a listen request. A bare sequence becomes a cursor, which names the segment of the event before
 * it. Throws a Problem `gap` if that event is no longer retained.
 */
export async function startOf({ zone, stream, from }: ListenRequest): Promise<From> {
  if (typeof from !== "number") return from;
  if (from <= 1) return "oldest";
  const before = await readEvent(zone, stream, from - 1);
  return { segment: before.segment, sequence: from - 1 };
}
