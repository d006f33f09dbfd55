/** The frames of the websocket; see docs/session-protocol.md. */

import type { components } from "../../api/schema";

type Language = components["schemas"]["Language"];

export interface Cursor {
  segment: string;
  sequence: number;
}

export type From = "now" | "oldest" | Cursor | { time: string };

export interface EventBody {
  domain?: string;
  type?: string;
  source?: string;
  attributes?: Record<string, unknown>;
  [field: string]: unknown;
}

/** One event as every transport delivers it. */
export interface DeliveredEvent extends Cursor {
  prev: number;
  liveness: "live" | "recovery" | "playback";
  appended_at: string;
  event: EventBody;
}

export interface EventFrame extends DeliveredEvent {
  op: "event";
}

interface Refused {
  title: string;
  status: number;
  code: string;
  detail: string;
  position?: { field?: string };
}

export interface ErrorFrame extends Refused {
  op: "error";
}

export interface GapFrame extends Refused {
  op: "gap";
  first_available: Cursor;
}

export interface MismatchFrame extends Refused {
  op: "segment_mismatch";
}

export type Frame =
  | EventFrame
  | ErrorFrame
  | GapFrame
  | MismatchFrame
  | { op: "hello"; client: string; zone: string }
  | { op: "listening"; cursor: Cursor; head: number }
  | { op: "ping"; positions: Record<string, Cursor & { prev: number }> }
  | { op: "status"; state: "waiting" | "resumed"; detail?: string }
  | { op: "resume"; reason: string }
  | { op: "stopped"; cursor: Cursor };

/** A request for events of a stream, live or stored. `from` as a number: start with that sequence. */
export interface ListenRequest {
  zone: string;
  stream: string;
  from: From | number;
  domain?: string;
  type?: string;
  application?: string;
  attributes: Record<string, unknown>;
  language?: Language["name"]; // of `filter`, which replaces the four fields above
  filter?: string; // in that language; JSON as text
  channels: string[]; // by name; empty: all
}
