/**
 * The position of one listener across its connections and transports: the reader's rules of the
 * session protocol, without I/O.
 */

import { isCursor, startField, startText } from "./cursor.ts";
import type { Cursor, Start } from "./cursor.ts";
import { LossDetected, refusal } from "./errors.ts";
import type { Problem } from "./errors.ts";
import { delivered } from "./types.ts";
import type { Delivered, Message, Snapshot, StateItem } from "./types.ts";

/** The name of the only listener on a websocket. */
export const LISTENER = "client";

/** Which events to deliver: pairs, or a filter in a language, or the client's own registrations. */
export interface Filter {
  readonly domain?: string;
  readonly type?: string;
  readonly attributes?: Readonly<Record<string, unknown>>;
  readonly application?: string;
  readonly language?: string;
  /** In that language: text or JSON. */
  readonly filter?: unknown;
  readonly registrations?: readonly number[];
  /** Each event gets the `signature` of its tags. */
  readonly signature?: boolean;
}

/** The request of a listener. */
export interface Subscription {
  readonly stream: string;
  readonly start: Start;
  /** 64 channel bits, or names of channels. */
  readonly mask?: bigint | readonly string[] | undefined;
  readonly filter: Filter;
  /** Of a keyed stream: when to send its state. */
  readonly state?: "gap" | "always" | "never" | undefined;
  /** The number of events that may be unacknowledged on a websocket. */
  readonly window?: number | undefined;
}

/** `take` gets every message, in order; after a lost connection `request` or `query` resumes. */
export class ReadPosition {
  readonly stream: string;
  start: Start;
  readonly #subscription: Subscription;
  #state: Subscription["state"];
  #parts: StateItem[] = []; // of an incomplete snapshot

  constructor(subscription: Subscription) {
    this.stream = subscription.stream;
    this.start = subscription.start;
    this.#subscription = subscription;
    this.#state = subscription.state;
  }

  /** Return the websocket message that starts or resumes the listener. */
  request(): Record<string, unknown> {
    const { stream, mask, filter, window } = this.#subscription;
    this.#parts = []; // an interrupted snapshot starts again
    return {
      op: "listen",
      listener: LISTENER,
      stream,
      ...(mask === undefined ? {} : { mask: typeof mask === "bigint" ? String(mask) : mask }),
      ...filter,
      ...(this.#state ? { state: this.#state } : {}),
      ...(window ? { window } : {}),
      from: startField(this.start),
    };
  }

  /** Return the same as query parameters of the listen route, for server-sent events. */
  query(): Record<string, string> {
    this.#parts = [];
    return { ...this.pageQuery(), ...(this.#state ? { state: this.#state } : {}) };
  }

  /** Return the same for pages, which have no state. */
  pageQuery(): Record<string, string> {
    const { mask, filter } = this.#subscription;
    return { from: startText(this.start), ...queryOf(mask, filter) };
  }

  /**
   * Return the event or snapshot that a message completes, if any; an event that was delivered
   * before is none. Throws HubProblem for a refusal, LossDetected for a lost frame.
   */
  take(message: Message): Delivered | Snapshot | undefined {
    switch (message.op) {
      case "event":
        return this.#event(delivered(message));
      case "listening":
        this.start = cursorOf(message.cursor);
        return undefined;
      case "position":
        this.#moved(message);
        return undefined;
      case "ping":
        this.#moved(message.positions[LISTENER]);
        return undefined;
      case "state": {
        const { key, segment, sequence, event, appended_at: appendedAt } = message;
        this.#parts.push({ key, segment, sequence, event, appendedAt });
        return undefined;
      }
      case "state_end":
        return this.#complete(cursorOf(message.cursor));
      case "gap":
      case "segment_mismatch":
      case "error":
        if ("then" in message && message.then === "state") return undefined;
        throw refusal(this.withKnown(message as unknown as Problem));
      default:
        return undefined;
    }
  }

  /** Return a problem document with the listener's last sequence, if there is one. */
  withKnown(problem: Problem): Problem {
    return isCursor(this.start) ? { ...problem, known: this.start.sequence } : problem;
  }

  #event(event: Delivered): Delivered | undefined {
    const known = this.start;
    if (isCursor(known) && event.segment === known.segment && event.sequence <= known.sequence) {
      return undefined;
    }
    this.#follows(event.prev);
    this.start = event.cursor;
    return event;
  }

  #complete(cursor: Cursor): Snapshot {
    this.start = cursor;
    if (this.#state === "always") this.#state = "gap"; // from now on only after a gap
    const items = this.#parts;
    this.#parts = [];
    return { items, cursor };
  }

  #moved(position: (Cursor & { prev: number }) | undefined): void {
    if (!position) return;
    this.#follows(position.prev);
    this.start = cursorOf(position);
  }

  #follows(prev: number | undefined): void {
    if (prev !== undefined && isCursor(this.start) && prev !== this.start.sequence) {
      throw new LossDetected(this.start.sequence, prev);
    }
  }
}

/** Return a filter as query parameters. */
export function queryOf(mask: Subscription["mask"], filter: Filter): Record<string, string> {
  const query: Record<string, string> = {};
  for (const [name, value] of Object.entries(filter)) {
    if (value === undefined) continue;
    if (typeof value === "string") query[name] = value;
    else if (name === "registrations") query[name] = (value as readonly number[]).join(",");
    else query[name] = JSON.stringify(value);
  }
  if (typeof mask === "bigint") query["mask"] = String(mask);
  else if (mask) query["channels"] = mask.join(",");
  return query;
}

function cursorOf(found: Cursor): Cursor {
  return { segment: found.segment, sequence: found.sequence };
}
