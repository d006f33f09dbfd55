/** What the websocket says and is told; see docs/session-protocol.md. */

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

/** One event as every door tells it. */
export interface Told extends Cursor {
  prev: number;
  liveness: "live" | "recovery" | "playback";
  appended_at: string;
  event: EventBody;
}

export interface EventFrame extends Told {
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

/** What is listened to or read. `from` as a number: with that sequence. */
export interface Wish {
  zone: string;
  stream: string;
  from: From | number;
  domain?: string;
  type?: string;
  application?: string;
  attributes: Record<string, unknown>;
  language?: Language["name"]; // of the filter, which stands instead of the four
  filter?: string; // in that language; JSON as text
  channels: string[]; // by name; any if there is none
}
