/** A consumer session across all its connections: its events, and their acknowledgements. */

import { pauseMs, wait } from "./backoff.ts";
import { ConnectionLost, HubProblem, mayRetry, refusal, SessionEnded } from "./errors.ts";
import type { Problem } from "./errors.ts";
import { HandedEvents } from "./handed.ts";
import type { Http } from "./http.ts";
import { Inbox } from "./inbox.ts";
import { renewable } from "./listening.ts";
import { HubSocket, hasWebSocket } from "./socket.ts";
import { serverSent } from "./transports.ts";
import { delivered } from "./types.ts";
import type { Delivered, EventMessage, Message } from "./types.ts";

/** How to connect a session. */
export interface SessionOptions {
  /** The number of events that may be unacknowledged, instead of the session's own; websocket. */
  readonly window?: number;
  /** What to do when events are no longer stored. */
  readonly onGap?: "throw" | "continue" | ((problem: HubProblem) => void);
  /** By default `websocket`, or `sse` where there is none. */
  readonly transport?: "websocket" | "sse";
  /** Ends the session's connection and iteration. */
  readonly signal?: AbortSignal;
}

/** How to acknowledge. */
export interface AcknowledgeOptions {
  /** Also the events of the same stream that came before and have lower sequences. */
  readonly through?: boolean;
  /** Wait until the acknowledgement is durable. */
  readonly stored?: boolean;
}

/** How to pull. */
export interface PullOptions {
  /** The seconds to wait for the first event. */
  readonly waitS?: number;
  /** The seconds for which the events are the caller's. */
  readonly visibilityS?: number;
  /** Events to acknowledge first. */
  readonly acknowledge?: readonly Delivered[];
}

interface Pending {
  readonly stream: string;
  readonly sequences: readonly number[];
  readonly done: (error?: Error) => void;
}

const PULL_TIMEOUT_S = 30; // for the answer to a pull, beyond the time that it waits

/**
 * `for await (const event of session)`, then `await session.acknowledge(event)`.
 *
 * It connects with the first iteration, and again after each loss. Events that are not acknowledged
 * come again; those that the caller has already are not handed out twice. The iteration throws
 * SessionEnded when the hub ends the session, HubProblem if a retry cannot help.
 */
export class ConsumerSession implements AsyncIterable<Delivered> {
  readonly name: string;
  /** The problems of streams that the key may not listen to, by stream. */
  readonly refused = new Map<string, HubProblem>();
  readonly #http: Http;
  readonly #options: SessionOptions;
  readonly #transport: "websocket" | "sse";
  readonly #handed = new HandedEvents();
  readonly #inbox = new Inbox<Delivered>();
  readonly #controller = new AbortController();
  readonly #pending = new Map<string, Pending>(); // acknowledgements without an answer, by id
  #socket: HubSocket | undefined;
  #ids = 0;
  #attempt = 0;
  #acknowledges = true; // unless the session's quality needs none
  #running = false;

  constructor(http: Http, name: string, options: SessionOptions = {}) {
    this.name = name;
    this.#http = http;
    this.#options = options;
    this.#transport = options.transport ?? (hasWebSocket() ? "websocket" : "sse");
    if (this.#transport === "sse" && options.window !== undefined) {
      throw new RangeError("Over server-sent events the window is that of the session.");
    }
    options.signal?.addEventListener("abort", () => this.close());
    if (options.signal?.aborted) this.close();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Delivered> {
    if (!this.#running) {
      this.#running = true;
      void this.#run();
    }
    try {
      for (;;) {
        const event = await this.#inbox.next();
        if (!event) return;
        if (this.#acknowledges) this.#handed.handOut(event);
        yield event;
      }
    } finally {
      this.close();
    }
  }

  /** End the connection and the iteration. What is not acknowledged comes again later. */
  close(): void {
    this.#inbox.clear();
    this.#inbox.end();
    this.#controller.abort();
  }

  /**
   * Acknowledge an event, or several. While the connection is lost this is remembered, and sent when
   * the event comes again; with `stored` it throws ConnectionLost. Over server-sent events it is a
   * request, which throws HubProblem or ConnectionLost.
   */
  async acknowledge(
    events: Delivered | readonly Delivered[],
    { through = false, stored = false }: AcknowledgeOptions = {},
  ): Promise<void> {
    const given = list(events);
    for (const event of given) this.#handed.acknowledge(event, through);
    const answers = [...byStream(given)].map(async ([stream, sequences]) => {
      const covered = through ? this.#handed.acknowledging(stream) : sequences;
      const fields = through ? { sequence: Math.max(...sequences) } : { sequences };
      if (this.#transport === "sse") {
        await this.#post([{ stream, ...fields }]);
        this.#handed.stored(stream, covered);
        return;
      }
      const answer = this.#send(stream, fields, covered);
      if (stored) await answer;
      else answer.catch(() => undefined); // it comes again, and is acknowledged then
    });
    await Promise.all(answers);
  }

  /** Have events delivered again at once, because they could not be processed. */
  async nak(events: Delivered | readonly Delivered[]): Promise<void> {
    for (const event of list(events)) this.#handed.again(event);
    for (const [stream, sequences] of byStream(list(events))) {
      if (this.#transport === "sse") await this.#post([{ stream, nak: sequences }]);
      else this.#socket?.send({ op: "nak", session: this.name, stream, sequences });
    }
  }

  /**
   * Return the next events, at most so many (0: only acknowledge), without an iteration: they are
   * the caller's for `visibilityS`, and come again unless they are acknowledged by then.
   */
  async pull(max: number, options: PullOptions = {}): Promise<Delivered[]> {
    const { waitS = 0, visibilityS = 30, acknowledge = [] } = options;
    const acknowledgements = [...byStream(acknowledge)].map(([stream, sequences]) => ({
      stream,
      sequences,
    }));
    return await this.#pull({ max, wait_s: waitS, visibility_s: visibilityS, acknowledgements });
  }

  /** Have pulled events for so many seconds from now; with 0 they are given back. */
  async extend(events: Delivered | readonly Delivered[], visibilityS: number): Promise<void> {
    const visibility = [...byStream(list(events))].map(([stream, sequences]) => ({
      stream,
      sequences,
      visibility_s: visibilityS,
    }));
    await this.#pull({ max: 0, visibility });
  }

  async #pull(body: { max: number; wait_s?: number; [name: string]: unknown }): Promise<Delivered[]> {
    const timeoutMs = ((body.wait_s ?? 0) + PULL_TIMEOUT_S) * 1000;
    const found = (await this.#http.ask({
      method: "POST",
      path: this.#path("pull"),
      body,
      timeoutMs,
    })) as { events: EventMessage[]; messages: Problem[] };
    this.refused.clear();
    for (const one of found.messages) {
      if (typeof one["stream"] === "string") this.refused.set(one["stream"], refusal(one));
    }
    return found.events.map(delivered);
  }

  /** Send an acknowledgement; the promise is that of its answer. */
  async #send(stream: string, fields: object, covered: readonly number[]): Promise<void> {
    const id = String((this.#ids += 1));
    await new Promise<void>((resolve, reject) => {
      const done = (error?: Error): void => (error ? reject(error) : resolve());
      this.#pending.set(id, { stream, sequences: covered, done });
      try {
        if (!this.#socket) throw new ConnectionLost("The session is not connected.");
        this.#socket.send({ op: "ack", session: this.name, stream, ...fields, id });
      } catch (error) {
        this.#pending.delete(id);
        reject(error as Error);
      }
    });
  }

  async #post(streams: readonly object[]): Promise<void> {
    await this.#http.ask({ method: "POST", path: this.#path("acknowledgements"), body: { streams } });
  }

  #path(what: string): string {
    return `/v1/sessions/${encodeURIComponent(this.name)}/${what}`;
  }

  /** Connect until the session ends; the reason ends the iteration. */
  async #run(): Promise<void> {
    const { signal } = this.#controller;
    while (!signal.aborted) {
      let failed: unknown;
      const before = this.#attempt;
      try {
        if (this.#transport === "sse") await this.#events(signal);
        else await this.#connection(signal);
      } catch (error) {
        failed = error;
        const renewed = renewable(this.#http, error) && (this.#attempt === 0 || before === 0);
        if (!mayRetry(error) && !renewed) {
          this.#inbox.end(error);
          return;
        }
      }
      await wait(pauseMs(this.#attempt, failed), signal);
      this.#attempt += 1;
    }
  }

  async #events(signal: AbortSignal): Promise<void> {
    const request = { method: "GET", path: this.#path("events"), signal };
    for await (const message of serverSent(this.#http, request)) this.#take(message);
  }

  async #connection(signal: AbortSignal): Promise<void> {
    const probe = { method: "GET", path: this.#path("positions") };
    const socket = await HubSocket.open(this.#http, probe, signal);
    try {
      this.#socket = socket;
      socket.send({ op: "connect", session: this.name });
      for (;;) {
        const message = await socket.next();
        if (!message) return;
        this.#take(message);
      }
    } finally {
      this.#socket = undefined;
      socket.close();
      for (const one of this.#pending.values()) one.done(new ConnectionLost("It was closed."));
      this.#pending.clear();
    }
  }

  #take(message: Message): void {
    switch (message.op) {
      case "connected":
        this.#begin(message.window !== null);
        return;
      case "changed":
        this.#acknowledges = message.window !== null;
        return;
      case "event":
        this.#event(delivered(message));
        return;
      case "acked":
        this.#acknowledged(message.id);
        return;
      case "disconnected":
        throw new SessionEnded(this.name, message.reason);
      case "gap":
      case "segment_mismatch":
        this.#lost(refusal(message as unknown as Problem));
        return;
      case "error": {
        const problem = refusal(message as unknown as Problem);
        if (message.stream === undefined) throw problem;
        this.refused.set(message.stream, problem);
        return;
      }
      default:
    }
  }

  /** Start on a connection: what waits from the one before comes again. */
  #begin(acknowledges: boolean): void {
    this.#inbox.clear();
    this.#attempt = 0;
    this.#acknowledges = acknowledges;
    const events = this.#options.window;
    if (events === undefined) return;
    this.#acknowledges = true;
    this.#socket?.send({ op: "credit", session: this.name, events });
  }

  #event(event: Delivered): void {
    const decision = this.#handed.arrived(event);
    if (decision === "deliver") this.#inbox.push(event);
    else if (decision === "acknowledge") void this.#acknowledgeAgain(event);
  }

  async #acknowledgeAgain({ stream, sequence }: Delivered): Promise<void> {
    try {
      if (this.#transport === "websocket") {
        await this.#send(stream, { sequences: [sequence] }, [sequence]);
        return;
      }
      await this.#post([{ stream, sequences: [sequence] }]);
      this.#handed.stored(stream, [sequence]);
    } catch {
      // it comes again
    }
  }

  #acknowledged(id: string): void {
    const pending = this.#pending.get(id);
    if (!pending) return;
    this.#pending.delete(id);
    this.#handed.stored(pending.stream, pending.sequences);
    pending.done();
  }

  #lost(problem: HubProblem): void {
    const { onGap = "throw" } = this.#options;
    if (onGap === "throw") throw problem;
    if (onGap !== "continue") onGap(problem);
  }
}

function list(events: Delivered | readonly Delivered[]): readonly Delivered[] {
  return Array.isArray(events) ? events : [events as Delivered];
}

function byStream(events: readonly Delivered[]): Map<string, number[]> {
  const found = new Map<string, number[]>();
  for (const { stream, sequence } of events) {
    found.set(stream, [...(found.get(stream) ?? []), sequence]);
  }
  return found;
}
