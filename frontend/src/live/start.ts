import { api, done } from "../api/client";
import type { From, Wish } from "./frames";

const LIFE = { lifetime_s: 600 }; // each new connection brings a new token

/** A fresh token for one connection: it may listen in the zone, and dies with the login. */
export async function mintToken(zone: string): Promise<string> {
  const minted = await done(api.POST("/v1/connection-tokens", { params: { query: { zone } }, body: LIFE }));
  return minted.token;
}

/**
 * Where to begin. A bare sequence becomes a cursor, which names the segment of the event before it; a Problem `gap`
 * when that one is no longer held.
 */
export async function startOf({ zone, stream, from }: Wish): Promise<From> {
  if (typeof from !== "number") return from;
  if (from <= 1) return "oldest";
  const path = { stream, sequence: String(from - 1) };
  const before = await done(api.GET("/v1/streams/{stream}/events/{sequence}", { params: { path, query: { zone } } }));
  return { segment: before.segment, sequence: from - 1 };
}
