import createClient from "openapi-fetch";

import { fetchWithToken } from "./csrf";
import { Problem } from "./problem";
import type { paths } from "./schema";

/** The hub's API, typed by its OpenAPI document. Wrap each call in `done`. */
export const api = createClient<paths>({ baseUrl: location.origin, fetch: fetchWithToken });

interface Outcome<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** Return the answer of a call, or throw its Problem. */
export async function done<T>(call: Promise<Outcome<T>>): Promise<T> {
  const { data, error, response } = await call;
  if (!response.ok) throw new Problem(response.status, (error ?? {}));
  return data as T;
}

/** A resource with its ETag, which a change must name. */
export interface Loaded<T> {
  value: T;
  etag: string | undefined;
}

export async function loaded<T>(call: Promise<Outcome<T>>): Promise<Loaded<T>> {
  const { response } = await call;
  const value = await done(call);
  return { value, etag: response.headers.get("ETag") ?? undefined };
}

/** Return the headers of a conditional change. */
export function ifMatch(etag: string | undefined): Record<string, string> {
  return etag === undefined ? {} : { "If-Match": etag };
}
