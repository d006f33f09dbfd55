/** The client's values; messages and events have the types of the OpenAPI and AsyncAPI documents. */

import type { Cursor } from "./cursor.ts";
import type { Range } from "./errors.ts";
import type { components as sent } from "./generated/asyncapi.ts";

type Sent = sent["schemas"];

/** An event as a producer sends it. */
export type EventIn = Sent["EventIn"];
/** An event's own fields as the hub delivers them. */
export type HubEvent = Sent["Event"];

/** A message to the hub. */
export type MessageToHub =
  | Sent["ListenMessage"]
  | Sent["Ack"]
  | Sent["Nak"]
  | Sent["Connect"]
  | Sent["Credit"]
  | Sent["Disconnect"];

/** A message of the hub that concerns a listener or a session. */
export type Message =
  | Sent["SentHello"]
  | Sent["SentListening"]
  | Sent["SentEvent"]
  | Sent["SentState"]
  | Sent["SentStateEnd"]
  | Sent["SentPing"]
  | Sent["SentPosition"]
  | Sent["SentGap"]
  | Sent["SentSegmentMismatch"]
  | Sent["SentError"]
  | Sent["SentStatus"]
  | Sent["SentResume"]
  | Sent["SentConnected"]
  | Sent["SentChanged"]
  | Sent["SentDisconnected"]
  | Sent["SentAcked"];
export type EventMessage = Omit<Sent["SentEvent"], "op">;

/** An event of a listener, a session or a page. Sequences between `prev` and `sequence` did not match. */
export interface Delivered {
  readonly segment: string;
  readonly sequence: number;
  readonly prev: number;
  /** `recovery`: missed since a cursor; `playback`: replayed on demand. */
  readonly liveness: "live" | "recovery" | "playback";
  readonly event: HubEvent;
  readonly appendedAt: string;
  /** The position to store, and to resume from. */
  readonly cursor: Cursor;
  /** The registrations that matched. */
  readonly registrations: readonly number[];
  /** By registration, the variable that its filter binds to the event. */
  readonly variables: Readonly<Record<string, string>>;
  /** The stream of an event for a session; empty for a listener. */
  readonly stream: string;
  /** Why an event came out of the session's order. */
  readonly outOfOrder: string;
  /** How often an event was handed out, in a session that shares, or that delivers it again. */
  readonly attempt: number;
  readonly latestVersion: string;
  readonly signature: string;
}

/** The latest event of each key of a keyed stream at a cursor. */
export interface Snapshot {
  readonly items: readonly StateItem[];
  readonly cursor: Cursor;
}

export interface StateItem {
  readonly key: string;
  readonly segment: string;
  readonly sequence: number;
  readonly event: HubEvent;
  readonly appendedAt: string;
}

/** The answer to an emit: the events are durable. */
export interface Receipt {
  readonly stream: string;
  readonly ranges: readonly Range[];
  /** Events that were stored before, by their index in the request. */
  readonly duplicates: readonly { index: number; segment: string; sequence: number }[];
  /** Delayed events, by their index, with the timers by which they can be read and cancelled. */
  readonly delayed?: readonly { index: number; timer: number; due_at: string }[];
  /** The last of the new events, or else of the duplicates; sequence 0 if all events are delayed. */
  readonly cursor: Cursor;
}

/** A part of a stream's history. */
export interface Page {
  readonly events: readonly Delivered[];
  /** Where the next page starts; undefined if no page follows backward. */
  readonly cursor: Cursor | undefined;
  readonly head: number;
  readonly first: number;
}

/** Return the event of a message. */
export function delivered(message: EventMessage): Delivered {
  const { segment, sequence } = message;
  const variables: Record<string, string> = {};
  for (const [id, bound] of Object.entries(message.bindings ?? {})) {
    variables[id] = Object.keys(bound)[0] ?? "";
  }
  return {
    segment,
    sequence,
    prev: message.prev ?? sequence - 1,
    liveness: message.liveness,
    event: message.event,
    appendedAt: message.appended_at,
    cursor: { segment, sequence },
    registrations: message.registrations ?? [],
    variables,
    stream: message.stream ?? "",
    outOfOrder: message.out_of_order ?? "",
    attempt: message.attempt ?? 0,
    latestVersion: message.latest_version ?? "",
    signature: message.signature ?? "",
  };
}
