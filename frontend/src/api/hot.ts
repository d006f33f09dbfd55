/** The event API accepts no login, only a connection token, which the login mints and which expires with it. */

import { api, done } from "./client";
import { exactAnswer, parseExactly } from "./exact";
import { Problem, type ProblemBody } from "./problem";
import type { components } from "./schema";

const LIFE_S = 600;
const REST_MS_MIN = 60_000; // remaining lifetime that a cached token must have

interface Minted {
  token: Promise<string>;
  until: number; // performance.now()
}

const cachedTokens = new Map<string, Minted>();

/** Mint a token for one connection: it may listen in the zone, or has the given grants instead. */
export async function mintToken(zone: string, grants?: components["schemas"]["Grant"][]): Promise<string> {
  const body = { lifetime_s: LIFE_S, ...(grants === undefined ? {} : { grants }) };
  const minted = await done(api.POST("/v1/connection-tokens", { params: { query: { zone } }, body }));
  return minted.token;
}

/** Read JSON from the event API; numbers keep all digits. */
export async function readHot<T>(zone: string, path: string, query: URLSearchParams): Promise<T> {
  const answer = await request(zone, path, query);
  if (answer.status !== 401) return bodyOf<T>(answer);
  cachedTokens.delete(zone); // the login has changed
  return bodyOf<T>(await request(zone, path, query));
}

/** Read JSON from a route that requires the right to manage the stream; with a body it is a POST. */
export async function readManaged<T>(zone: string, stream: string, path: string, body?: string): Promise<T> {
  const token = await mintToken(zone, [{ action: "manage", streams: stream }]);
  const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json", Accept: "application/json" };
  return bodyOf<T>(await fetch(path, { method: body === undefined ? "GET" : "POST", headers, body, credentials: "omit" }));
}

/** Yield the JSON lines of a POST's answer as they arrive; aborting the signal ends the request. */
export async function* linesOf<T>(zone: string, path: string, body: string, signal: AbortSignal): AsyncGenerator<T> {
  const headers = { Authorization: `Bearer ${await cachedToken(zone)}`, "Content-Type": "application/json", Accept: "application/x-ndjson" };
  const answer = await fetch(path, { method: "POST", headers, body, signal, credentials: "omit" });
  if (answer.status === 401) cachedTokens.delete(zone);
  if (!answer.ok) await bodyOf<never>(answer);
  if (answer.body === null) return;
  const chunks = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await chunks.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line !== "") yield parseExactly(line) as T;
  }
}

/** Returns the stored bytes of a sealed segment. */
export async function readRaw(zone: string, stream: string, segment: string): Promise<Blob> {
  const token = await mintToken(zone, [{ action: "listen", streams: stream }]);
  const path = `/v1/streams/${encodeURIComponent(stream)}/segments/${segment}/raw`;
  const answer = await fetch(path, { headers: { Authorization: `Bearer ${token}` }, credentials: "omit" });
  return answer.ok ? answer.blob() : bodyOf<never>(answer);
}

async function request(zone: string, path: string, query: URLSearchParams): Promise<Response> {
  const headers = { Authorization: `Bearer ${await cachedToken(zone)}`, Accept: "application/json" };
  return fetch(`${path}?${query.toString()}`, { headers, credentials: "omit" });
}

async function bodyOf<T>(answer: Response): Promise<T> {
  if (answer.ok) return (await (await exactAnswer(answer)).json()) as T;
  const problem = (await answer.json().catch(() => ({}))) as Partial<ProblemBody>;
  throw new Problem(answer.status, problem);
}

function cachedToken(zone: string): Promise<string> {
  const found = cachedTokens.get(zone);
  if (found !== undefined && found.until > performance.now()) return found.token;
  const minted = { token: mintToken(zone), until: performance.now() + LIFE_S * 1000 - REST_MS_MIN };
  minted.token.catch(() => cachedTokens.delete(zone));
  cachedTokens.set(zone, minted);
  return minted.token;
}
