/** The transports of a listener: each yields the hub's messages until the connection ends. */

import { ConnectionLost } from "./errors.ts";
import { Http, reached, streamPath } from "./http.ts";
import type { HttpRequest } from "./http.ts";
import { LISTENER } from "./position.ts";
import type { ReadPosition } from "./position.ts";
import { EventStream } from "./serverSent.ts";
import { HubSocket } from "./socket.ts";
import type { EventMessage, Message } from "./types.ts";

/** `websocket` needs a WebSocket, `sse` and `poll` fetch. The events are the same. */
export type Transport = "websocket" | "sse" | "poll";

const SILENCE_MS = 45_000; // three heartbeats of the hub; then the connection counts as dead
const POLL_S = 25; // below the 30 s after which proxies commonly time out

/** Messages of one connection. `taken` is called when the caller has handled an event. */
export interface Source {
  messages(): AsyncGenerator<Message>;
  taken(sequence: number): void;
}

/** Return one connection of a listener over a transport. */
export function source(
  transport: Transport,
  http: Http,
  position: ReadPosition,
  window: number,
  signal: AbortSignal,
): Source {
  if (transport === "websocket") return new SocketSource(http, position, window, signal);
  const path = streamPath(position.stream, "events");
  const messages =
    transport === "sse"
      ? () => serverSent(http, { method: "GET", path, query: position.query(), signal })
      : () => polled(http, path, position, signal);
  return { messages, taken: () => undefined };
}

/** A websocket with one listener, whose window is the number of events that may wait here. */
class SocketSource implements Source {
  #socket: HubSocket | undefined;
  #unacknowledged = 0;
  readonly #http: Http;
  readonly #position: ReadPosition;
  readonly #window: number;
  readonly #signal: AbortSignal;

  constructor(http: Http, position: ReadPosition, window: number, signal: AbortSignal) {
    this.#http = http;
    this.#position = position;
    this.#window = window;
    this.#signal = signal;
  }

  async *messages(): AsyncGenerator<Message> {
    const path = streamPath(this.#position.stream, "events");
    const query = { ...this.#position.pageQuery(), limit: "1" };
    const socket = await HubSocket.open(this.#http, { method: "GET", path, query }, this.#signal);
    this.#socket = socket;
    try {
      socket.send(this.#position.request());
      for (;;) {
        const message = await socket.next();
        if (!message) return;
        yield message;
      }
    } finally {
      this.#socket = undefined;
      socket.close();
    }
  }

  taken(sequence: number): void {
    this.#unacknowledged += 1;
    if (this.#unacknowledged * 2 < this.#window) return;
    this.#unacknowledged = 0;
    try {
      this.#socket?.send({ op: "ack", listener: LISTENER, sequence });
    } catch (error) {
      if (!(error instanceof ConnectionLost)) throw error; // the next connection has a new window
    }
  }
}

/**
 * Yield the messages of one response of server-sent events, until it ends or stays silent. Throws
 * HubProblem for a refusal.
 */
export async function* serverSent(http: Http, request: HttpRequest): AsyncGenerator<Message> {
  const controller = new AbortController();
  const abort = (): void => controller.abort();
  request.signal?.addEventListener("abort", abort);
  if (request.signal?.aborted) abort();
  let silence = setTimeout(abort, SILENCE_MS);
  try {
    const { signal } = controller;
    const headers = { Accept: "text/event-stream" };
    const response = await http.send({ ...request, headers, signal });
    if (!response.body) return;
    const reader = response.body.getReader();
    const stream = new EventStream();
    for (;;) {
      const { done, value } = await reached(() => reader.read(), signal);
      if (done) return;
      clearTimeout(silence);
      silence = setTimeout(abort, SILENCE_MS);
      for (const event of stream.feed(value)) yield JSON.parse(event.data) as Message;
    }
  } finally {
    clearTimeout(silence);
    request.signal?.removeEventListener("abort", abort);
    controller.abort();
  }
}

interface PageJson {
  readonly events: readonly EventMessage[];
  readonly cursor: { segment: string; sequence: number };
}

/** Yield the messages of one long poll after the other. */
async function* polled(
  http: Http,
  path: string,
  position: ReadPosition,
  signal: AbortSignal,
): AsyncGenerator<Message> {
  for (;;) {
    const query = { ...position.pageQuery(), timeout: String(POLL_S) };
    const request = { method: "GET", path, query, signal, timeoutMs: POLL_S * 2000 };
    const page = (await http.ask(request)) as PageJson;
    for (const item of page.events) yield { op: "event", ...item } as Message;
    yield { op: "listening", cursor: page.cursor, head: page.cursor.sequence } as Message;
  }
}
