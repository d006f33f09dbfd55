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

/** The answer of a call, or its problem as an exception. */
export async function done<T>(call: Promise<Outcome<T>>): Promise<T> {
  const { data, error, response } = await call;
  if (!response.ok) throw new Problem(response.status, (error ?? {}));
  return data as T;
}

/** What was read, with the ETag that a change of it must name. */
export interface Loaded<T> {
  value: T;
  etag: string | undefined;
}

export async function loaded<T>(call: Promise<Outcome<T>>): Promise<Loaded<T>> {
  const { response } = await call;
  const value = await done(call);
  return { value, etag: response.headers.get("ETag") ?? undefined };
}

/** Headers of a change that must fail when somebody else was faster. */
export function ifMatch(etag: string | undefined): Record<string, string> {
  return etag === undefined ? {} : { "If-Match": etag };
}
