/** The vectors that the TypeScript client and the Python client share. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { pauseBoundsS } from "../src/backoff.ts";
import { sign, UnverifiedCallback, verify } from "../src/callbacks.ts";
import { parseCursor } from "../src/cursor.ts";
import type { Cursor, Start } from "../src/cursor.ts";
import { GapError, HubProblem, LossDetected, mayRetry, refusal, SegmentMismatchError } from "../src/errors.ts";
import type { Problem } from "../src/errors.ts";
import { HandedEvents } from "../src/handed.ts";
import { ReadPosition } from "../src/position.ts";
import type { Filter, Subscription } from "../src/position.ts";
import { EventStream } from "../src/serverSent.ts";
import { closeProblem } from "../src/socket.ts";
import type { Message } from "../src/types.ts";

interface Vectors {
  positions: {
    name: string;
    start: Start;
    state?: "always" | "gap";
    state_after?: string;
    steps: [Message, unknown][];
    from: unknown;
  }[];
  requests: {
    start: Start;
    mask: string | string[] | null;
    filter: Filter;
    message: object;
    query: object;
  }[];
  backoff: { attempt: number; retry_after_s: number | null; bounds_s: [number, number] }[];
  event_streams: { name: string; text: string; events: object[] }[];
  problems: { problem: Problem; class: string; retry: boolean }[];
  closes: { code: number; reason: string; problem: Record<string, unknown> | null }[];
  signatures: {
    name: string;
    keys: string[];
    headers: Record<string, string>;
    body: string;
    now_s: number;
    id: string | null;
  }[];
  cursors: { text: string; cursor: Cursor | null }[];
}

const file = new URL("../../test_vectors.json", import.meta.url);
const vectors = JSON.parse(readFileSync(file, "utf8")) as Vectors;

/** Return the result of a message as the vectors write it. */
function taken(position: ReadPosition, message: Message): unknown {
  try {
    const item = position.take(message);
    if (!item) return null;
    if ("sequence" in item) return { event: item.cursor };
    return { snapshot: item.items.map((one) => [one.key, one.sequence]), cursor: item.cursor };
  } catch (error) {
    if (error instanceof LossDetected) {
      return { error: "LossDetected", known: error.known, prev: error.prev };
    }
    if (error instanceof GapError) {
      return { error: error.name, missing: error.missing ?? null, resume: error.resume };
    }
    if (error instanceof SegmentMismatchError) return { error: error.name, resume: error.resume };
    assert.ok(error instanceof HubProblem);
    return { error: error.name };
  }
}

for (const { name, start, state, state_after, steps, from } of vectors.positions) {
  test(`position: ${name}`, () => {
    const position = new ReadPosition({ stream: "orders", start, filter: {}, state });
    for (const [message, result] of steps) assert.deepEqual(taken(position, message), result);
    const request = position.request();
    assert.deepEqual(request["from"], from);
    assert.equal(request["state"], state_after ?? state);
  });
}

for (const { start, mask, filter, message, query } of vectors.requests) {
  test(`request: ${JSON.stringify(start)}`, () => {
    const bits: Subscription["mask"] = typeof mask === "string" ? BigInt(mask) : (mask ?? undefined);
    const position = new ReadPosition({ stream: "orders", start, mask: bits, filter });
    assert.deepEqual(position.request(), message);
    assert.deepEqual(position.query(), query);
  });
}

test("pauses have bounds", () => {
  for (const { attempt, retry_after_s, bounds_s } of vectors.backoff) {
    assert.deepEqual(pauseBoundsS(attempt, retry_after_s ?? undefined), bounds_s);
  }
});

for (const { name, text, events } of vectors.event_streams) {
  test(`server-sent events: ${name}`, () => {
    const bytes = new TextEncoder().encode(text);
    for (const size of [1, 2, 3, 7, bytes.length]) {
      const stream = new EventStream();
      const found: object[] = [];
      for (let at = 0; at < bytes.length; at += size) {
        found.push(...stream.feed(bytes.slice(at, at + size)));
      }
      assert.deepEqual(found, events);
    }
  });
}

for (const { problem, class: kind, retry } of vectors.problems) {
  test(`problem: ${JSON.stringify(problem)}`, () => {
    const error = refusal(problem);
    assert.equal(error.name, kind);
    assert.equal(error.constructor.name, kind);
    assert.equal(mayRetry(error), retry);
  });
}

for (const { code, reason, problem } of vectors.closes) {
  test(`close: ${code} ${reason}`, () => {
    const found = closeProblem(code, reason);
    assert.deepEqual(
      found
        ? { code: found.code, status: found.status, retry_after_s: found.retryAfterS ?? null }
        : null,
      problem,
    );
  });
}

for (const { name, keys, headers, body, now_s, id } of vectors.signatures) {
  test(`signature: ${name}`, async () => {
    const found = verify(keys, headers, body, { nowMs: now_s * 1000 });
    if (id === null) await assert.rejects(found, UnverifiedCallback);
    else assert.equal(await found, id);
  });
}

test("a signature of our own is that of the library", async () => {
  const { keys, headers, body, now_s } = vectors.signatures[0]!;
  const found = await sign(keys[0]!, headers["Webhook-Id"]!, now_s, body);
  assert.equal(found, headers["Webhook-Signature"]);
});

for (const { text, cursor } of vectors.cursors) {
  test(`cursor: ${text}`, () => {
    if (cursor === null) assert.throws(() => parseCursor(text), RangeError);
    else assert.deepEqual(parseCursor(text), cursor);
  });
}

test("an event of a session that the caller has is not handed out twice", () => {
  const event = (sequence: number) => ({ stream: "orders", segment: "s", sequence });
  const handed = new HandedEvents();
  for (const sequence of [1, 2, 3]) {
    assert.equal(handed.arrived(event(sequence)), "deliver");
    handed.handOut(event(sequence));
  }
  assert.equal(handed.arrived(event(2)), "ignore");
  assert.equal(handed.arrived({ ...event(2), segment: "t" }), "deliver");
  handed.again(event(3));
  assert.equal(handed.arrived(event(3)), "deliver");
  handed.acknowledge(event(2), true);
  assert.deepEqual(handed.acknowledging("orders"), [1, 2]);
  assert.equal(handed.arrived(event(1)), "acknowledge");
  handed.stored("orders", [1, 2]);
  assert.equal(handed.arrived(event(1)), "deliver");
});
