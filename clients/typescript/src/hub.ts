/** The client of a hub: emit, a listener that resumes, sessions, history, the management API. */

import type { CallArguments, Method, PathsWith, Answer } from "./api.ts";
import { pauseMs, wait } from "./backoff.ts";
import type { Cursor, Start } from "./cursor.ts";
import { startText } from "./cursor.ts";
import { mayRetry } from "./errors.ts";
import { Http, streamPath } from "./http.ts";
import type { Credential } from "./http.ts";
import { follow } from "./listening.ts";
import type { OnGap } from "./listening.ts";
import { queryOf, ReadPosition } from "./position.ts";
import type { Filter, Subscription } from "./position.ts";
import { ConsumerSession } from "./session.ts";
import type { SessionOptions } from "./session.ts";
import type { Transport } from "./transports.ts";
import { delivered } from "./types.ts";
import type { Delivered, EventIn, EventMessage, Page, Receipt, Snapshot } from "./types.ts";

const RETRY_FOR_MS = 30_000;
const WINDOW_EVENTS = 1_000; // that may wait for the caller of `listen`
const PAGE_EVENTS = 500;

/** How to emit. */
export interface EmitOptions {
  /** How long to try again while the hub is unavailable or unreachable; by default 30 s. */
  readonly retryForMs?: number;
  /** Made at random by default: a repetition of the request stores no event twice. */
  readonly idempotencyKey?: string;
  readonly signal?: AbortSignal;
}

/** Which events to listen to, and how. */
export interface ListenOptions extends Filter {
  readonly start?: Start;
  /** 64 channel bits, or names of channels. */
  readonly mask?: bigint | readonly string[];
  readonly transport?: Transport;
  readonly onGap?: OnGap;
  /** The number of events that may wait for the caller, over a websocket. */
  readonly window?: number;
  /** Ends the iteration. */
  readonly signal?: AbortSignal;
}

/** Which stored events to read. */
export interface HistoryOptions extends Filter {
  readonly start?: Start;
  readonly order?: "forward" | "backward";
  readonly limit?: number;
  readonly mask?: bigint | readonly string[];
  readonly signal?: AbortSignal;
}

/** A hub at a URL. */
export class HubClient {
  readonly #http: Http;

  /**
   * `actingAs`: the session of the key's client through which requests emit, register or manage;
   * `session` consumes one.
   */
  constructor(
    baseUrl: string,
    credential: Credential,
    { actingAs }: { actingAs?: string } = {},
  ) {
    this.#http = new Http(baseUrl, credential, actingAs ? { "EventHub-Session": actingAs } : {});
  }

  /**
   * Store one event or several, all or none; return when they are durable. While the hub is
   * unavailable the request is repeated, with one key, so that nothing is stored twice. Throws
   * HubProblem for a refusal, ConnectionLost without an answer in time.
   */
  async emit(
    stream: string,
    events: EventIn | readonly EventIn[],
    options: EmitOptions = {},
  ): Promise<Receipt> {
    const { retryForMs = RETRY_FOR_MS, idempotencyKey = randomKey(), signal } = options;
    const headers = { "Idempotency-Key": idempotencyKey };
    const request = { method: "POST", path: streamPath(stream, "events"), body: events, headers, signal };
    const deadline = Date.now() + retryForMs;
    for (let attempt = 0; ; attempt += 1) {
      try {
        return receipt((await this.#http.ask(request)) as Omit<Receipt, "cursor">);
      } catch (error) {
        const pause = pauseMs(attempt, error);
        if (signal?.aborted || !mayRetry(error) || Date.now() + pause > deadline) throw error;
        await wait(pause, signal);
      }
    }
  }

  /**
   * Yield every event of a stream from a start on, in order, once; reconnect and resume
   * automatically. Throws GapError and SegmentMismatchError unless `onGap` handles them,
   * LossDetected, and other HubProblem.
   */
  async *listen(stream: string, options: ListenOptions = {}): AsyncGenerator<Delivered> {
    for await (const item of this.#follow(stream, "never", options)) {
      if ("sequence" in item) yield item;
    }
  }

  /**
   * Yield the state of a keyed stream, then every event; after a gap the state again. `listen` does
   * not send states.
   */
  async *state(
    stream: string,
    options: Omit<ListenOptions, "start" | "registrations"> = {},
  ): AsyncGenerator<Delivered | Snapshot> {
    yield* this.#follow(stream, "always", options);
  }

  /** Return a consumer session of the key's client, which connects when it is iterated. */
  session(name: string, options: SessionOptions = {}): ConsumerSession {
    return new ConsumerSession(this.#http, name, options);
  }

  /** Return one page of a stream's history: forward from `oldest`, or backward from `now`. */
  async page(stream: string, options: HistoryOptions = {}): Promise<Page> {
    const { start, order = "forward", limit = PAGE_EVENTS, mask, signal, ...filter } = options;
    const first = start ?? (order === "forward" ? "oldest" : "now");
    const query = {
      from: startText(first),
      order,
      limit: String(limit),
      ...queryOf(mask, filter),
    };
    const request = { method: "GET", path: streamPath(stream, "events"), query, signal };
    const found = (await this.#http.ask(request)) as PageJson;
    return { ...found, events: found.events.map(delivered), cursor: found.cursor ?? undefined };
  }

  /** Yield stored events: forward to the last one at the time of the call, or backward. */
  async *history(stream: string, options: HistoryOptions = {}): AsyncGenerator<Delivered> {
    let head: number | undefined;
    let start = options.start;
    for (;;) {
      const page = await this.page(stream, { ...options, ...(start ? { start } : {}) });
      head ??= page.head;
      for (const event of page.events) {
        if (options.order !== "backward" && event.sequence > head) return;
        yield event;
      }
      if (!page.cursor) return;
      start = page.cursor;
      if (options.order === "backward" ? start.sequence <= page.first : start.sequence >= head) return;
    }
  }

  /**
   * Call the management API: `hub.call("GET", "/v1/streams/{stream}", { path: { stream } })`. Paths,
   * parameters, bodies and answers have the types of the OpenAPI document.
   */
  async call<M extends Method, P extends PathsWith<M>>(
    method: M,
    path: P,
    ...[given]: CallArguments<M, P>
  ): Promise<Answer<M, P>> {
    const { path: names = {}, query = {}, body, ifMatch, signal } = (given ?? {}) as CallFields;
    const filled = path.replace(/\{(\w+)\}/g, (_, name: string) =>
      encodeURIComponent(String(names[name])),
    );
    const texts = Object.entries(query).filter(([, value]) => value !== undefined);
    return (await this.#http.ask({
      method,
      path: filled,
      body,
      query: Object.fromEntries(texts.map(([name, value]) => [name, String(value)])),
      headers: ifMatch === undefined ? {} : { "If-Match": ifMatch },
      signal,
    })) as Answer<M, P>;
  }

  #follow(
    stream: string,
    state: Subscription["state"],
    options: ListenOptions,
  ): AsyncGenerator<Delivered | Snapshot> {
    const { start = "now", mask, transport, onGap, signal, window = WINDOW_EVENTS, ...filter } = options;
    const position = new ReadPosition({ stream, start, mask, filter, state, window });
    return follow(this.#http, position, { transport, onGap, window, signal });
  }
}

interface CallFields {
  readonly path?: Record<string, string | number>;
  readonly query?: Record<string, unknown>;
  readonly body?: unknown;
  readonly ifMatch?: string;
  readonly signal?: AbortSignal;
}

interface PageJson {
  readonly events: readonly EventMessage[];
  readonly cursor: Cursor | null;
  readonly head: number;
  readonly first: number;
}

function receipt(answer: Omit<Receipt, "cursor">): Receipt {
  const range = answer.ranges.at(-1);
  const duplicate = answer.duplicates.at(-1);
  const cursor = range
    ? { segment: range.segment, sequence: range.last }
    : { segment: duplicate?.segment ?? "", sequence: duplicate?.sequence ?? 0 };
  return { ...answer, cursor };
}

/** Return a random key; `crypto.randomUUID` exists only in secure contexts. */
function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
