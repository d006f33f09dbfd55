/** The doors of events take no login but a connection token, which is minted by the login and dies with it. */

import { api, done } from "./client";
import { exactAnswer, parseExactly } from "./exact";
import { Problem, type ProblemBody } from "./problem";
import type { components } from "./schema";

const LIFE_S = 600;
const REST_MS_MIN = 60_000; // of its life, for a token that is used once more

interface Minted {
  token: Promise<string>;
  until: number; // performance.now()
}

const kept = new Map<string, Minted>();

/** A fresh token for one connection: it may listen in the zone, or do what is granted instead. */
export async function mintToken(zone: string, grants?: components["schemas"]["Grant"][]): Promise<string> {
  const body = { lifetime_s: LIFE_S, ...(grants === undefined ? {} : { grants }) };
  const minted = await done(api.POST("/v1/connection-tokens", { params: { query: { zone } }, body }));
  return minted.token;
}

/** A JSON answer of a door; numbers keep all digits. */
export async function readHot<T>(zone: string, path: string, query: URLSearchParams): Promise<T> {
  const answer = await asked(zone, path, query);
  if (answer.status !== 401) return bodyOf<T>(answer);
  kept.delete(zone); // another login since
  return bodyOf<T>(await asked(zone, path, query));
}

/** A JSON answer of a door that takes the right to manage the stream; with a body it is a POST. */
export async function readManaged<T>(zone: string, stream: string, path: string, body?: string): Promise<T> {
  const token = await mintToken(zone, [{ action: "manage", streams: stream }]);
  const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json", Accept: "application/json" };
  return bodyOf<T>(await fetch(path, { method: body === undefined ? "GET" : "POST", headers, body, credentials: "omit" }));
}

/** What a POST to a door tells in lines of JSON, each as it comes; giving up the signal ends it there too. */
export async function* linesOf<T>(zone: string, path: string, body: string, signal: AbortSignal): AsyncGenerator<T> {
  const headers = { Authorization: `Bearer ${await keptToken(zone)}`, "Content-Type": "application/json", Accept: "application/x-ndjson" };
  const answer = await fetch(path, { method: "POST", headers, body, signal, credentials: "omit" });
  if (answer.status === 401) kept.delete(zone);
  if (!answer.ok) await bodyOf<never>(answer);
  if (answer.body === null) return;
  const pieces = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await pieces.read();
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

async function asked(zone: string, path: string, query: URLSearchParams): Promise<Response> {
  const headers = { Authorization: `Bearer ${await keptToken(zone)}`, Accept: "application/json" };
  return fetch(`${path}?${query.toString()}`, { headers, credentials: "omit" });
}

async function bodyOf<T>(answer: Response): Promise<T> {
  if (answer.ok) return (await (await exactAnswer(answer)).json()) as T;
  const problem = (await answer.json().catch(() => ({}))) as Partial<ProblemBody>;
  throw new Problem(answer.status, problem);
}

function keptToken(zone: string): Promise<string> {
  const found = kept.get(zone);
  if (found !== undefined && found.until > performance.now()) return found.token;
  const minted = { token: mintToken(zone), until: performance.now() + LIFE_S * 1000 - REST_MS_MIN };
  minted.token.catch(() => kept.delete(zone));
  kept.set(zone, minted);
  return minted.token;
}
