/** HTTP requests to the hub: JSON in and out, refusals as errors. */

import { ConnectionLost, refusal } from "./errors.ts";
import type { Problem } from "./errors.ts";

/**
 * An API key or a connection token; or a function that returns one, which is called for each request
 * and connection. Use a function where tokens expire.
 */
export type Credential = string | (() => string | Promise<string>);

/** A request; `path` begins with /v1 and is quoted. */
export interface HttpRequest {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
  /** The milliseconds after which the hub counts as unreachable. */
  readonly timeoutMs?: number;
}

const TIMEOUT_MS = 60_000;

/** The hub at a URL. */
export class Http {
  readonly baseUrl: string;
  readonly #credential: Credential;
  readonly #headers: Record<string, string>;

  constructor(baseUrl: string, credential: Credential, headers: Record<string, string> = {}) {
    this.baseUrl = baseUrl.replace(/\/+$/, "");
    this.#credential = credential;
    this.#headers = headers;
  }

  /** Whether another credential may be had after this one has expired. */
  get renews(): boolean {
    return typeof this.#credential === "function";
  }

  async credential(): Promise<string> {
    return typeof this.#credential === "function" ? await this.#credential() : this.#credential;
  }

  async headers(): Promise<Record<string, string>> {
    return { Authorization: `Bearer ${await this.credential()}`, ...this.#headers };
  }

  /**
   * Send a request; return the response, whose body may be read. Throws HubProblem for a refusal,
   * ConnectionLost without an answer.
   */
  async send(request: HttpRequest): Promise<Response> {
    const url = new URL(this.baseUrl + request.path);
    for (const [name, value] of Object.entries(request.query ?? {})) {
      url.searchParams.set(name, value);
    }
    const headers = { ...(await this.headers()), ...request.headers };
    const body = request.body === undefined ? null : JSON.stringify(request.body);
    if (body !== null) Object.assign(headers, { "Content-Type": "application/json" });
    const { method, signal = null } = request;
    const response = await reached(() => fetch(url, { method, headers, body, signal }), signal);
    if (response.status >= 400) throw await refused(response, signal);
    return response;
  }

  /** Send a request and return the JSON of the answer; undefined if it has none. */
  async ask(request: HttpRequest): Promise<unknown> {
    const timeout = AbortSignal.timeout(request.timeoutMs ?? TIMEOUT_MS);
    const controller = new AbortController();
    const abort = (): void => controller.abort();
    const signals = [timeout, ...(request.signal ? [request.signal] : [])];
    for (const one of signals) one.addEventListener("abort", abort);
    if (request.signal?.aborted) abort();
    try {
      const response = await this.send({ ...request, signal: controller.signal });
      const text = await reached(() => response.text(), controller.signal);
      return text ? JSON.parse(text) : undefined;
    } finally {
      for (const one of signals) one.removeEventListener("abort", abort);
    }
  }
}

/** Return what fetch returns. Throws ConnectionLost in place of its errors. */
export async function reached<T>(call: () => Promise<T>, signal?: AbortSignal | null): Promise<T> {
  try {
    return await call();
  } catch (error) {
    const reason = signal?.aborted ? "The request was aborted." : "The hub is unreachable.";
    throw new ConnectionLost(reason, { cause: error });
  }
}

/** Return the path of a stream's resource: `streamPath("a", "events")`. */
export function streamPath(stream: string, ...rest: string[]): string {
  return ["/v1/streams", ...[stream, ...rest].map(encodeURIComponent)].join("/");
}

async function refused(response: Response, signal: AbortSignal | null): Promise<Error> {
  const text = await reached(() => response.text(), signal);
  return refusal({ status: response.status, ...problemOf(text) }, retryAfterS(response.headers));
}

/** Return a problem document; empty if something else answered, such as a proxy. */
function problemOf(text: string): Problem {
  try {
    const found: unknown = JSON.parse(text);
    const isObject = found !== null && typeof found === "object" && !Array.isArray(found);
    return isObject ? (found as Problem) : {};
  } catch {
    return {};
  }
}

function retryAfterS(headers: Headers): number | undefined {
  const text = headers.get("Retry-After") ?? "";
  return /^[0-9]+$/.test(text) ? Number(text) : undefined;
}
