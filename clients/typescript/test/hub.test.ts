/**
 * The client against a running hub, which `tests/acceptance/eventhub_client/test_typescript_client.py`
 * starts: HUB_URL, HUB_KEY, the streams and the session are its.
 */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import {
  ConsumerSession,
  HubClient,
  Missing,
  NotAllowed,
  SegmentMismatchError,
} from "../src/index.ts";
import type { Delivered, EventIn, Snapshot, Transport } from "../src/index.ts";
import { Relay } from "./relay.ts";

const url = process.env["HUB_URL"]!;
const key = process.env["HUB_KEY"]!;
const signal = AbortSignal.timeout(120_000);
const hub = new HubClient(url, key);
const relay = new Relay(url);
const through = (): HubClient => new HubClient(relay.url, key);
const TRANSPORTS: Transport[] = ["websocket", "sse", "poll"];

before(() => relay.mend());
after(() => relay.cut());

function numbered(first: number, last: number): EventIn[] {
  return Array.from({ length: last - first + 1 }, (_, at) => ({
    domain: "shop",
    type: "order.placed",
    attributes: { n: first + at },
  }));
}

const n = (event: Delivered): number => event.event.attributes["n"] as number;

async function take(events: AsyncIterator<Delivered>, count: number): Promise<Delivered[]> {
  const found: Delivered[] = [];
  while (found.length < count) {
    const next = await events.next();
    assert.ok(!next.done, "the iteration ended");
    found.push(next.value);
  }
  return found;
}

for (const transport of TRANSPORTS) {
  test(`a listener resumes after each loss of its connection: ${transport}`, async () => {
    const stream = `resumed-${transport}`;
    const options = { start: "oldest", transport, signal, domain: "shop" } as const;
    const events = through().listen(stream, options);
    const found: Delivered[] = [];
    for (const first of [1, 4, 7]) {
      await hub.emit(stream, numbered(first, first + 2));
      await hub.emit(stream, { domain: "else", type: "t" });
      found.push(...(await take(events, 3)));
      await relay.cut();
      await relay.mend();
    }
    await events.return(undefined);
    assert.deepEqual(found.map(n), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });
}

test("what was missed has the liveness recovery, and a small window holds back nothing", async () => {
  const events = through().listen("windowed", { start: "oldest", window: 2, signal });
  await hub.emit("windowed", numbered(1, 5));
  const first = await take(events, 5);
  await relay.cut();
  await hub.emit("windowed", numbered(6, 8));
  await relay.mend();
  const second = await take(events, 3);
  await events.return(undefined);
  assert.deepEqual([...first, ...second].map(n), [1, 2, 3, 4, 5, 6, 7, 8]);
  assert.deepEqual(second[0]!.liveness, "recovery");
});

test("a repeated emit stores its events once", async () => {
  const losing = new Relay(url);
  await losing.mend();
  losing.swallow = true;
  const receipt = await new HubClient(losing.url, key).emit("repeated", numbered(1, 3));
  await losing.cut();
  assert.equal(receipt.duplicates.length, 3);
  assert.equal(receipt.cursor.sequence, 3);
  const stored: Delivered[] = [];
  for await (const event of hub.history("repeated")) stored.push(event);
  assert.deepEqual(stored.map(n), [1, 2, 3]);
  const backward = await hub.page("repeated", { order: "backward", limit: 2 });
  assert.deepEqual(backward.events.map(n), [3, 2]);
});

test("refusals are errors of their reaction, on every transport", async () => {
  const wrong = new HubClient(url, `${key}x`);
  const segment = "5a4f0c0e-0000-4000-8000-000000000001";
  const options = (transport: Transport) => ({ transport, signal });
  for (const transport of TRANSPORTS) {
    const from = { ...options(transport), start: { segment, sequence: 7 } };
    await assert.rejects(hub.listen("no-such", options(transport)).next(), Missing);
    await assert.rejects(wrong.listen("repeated", options(transport)).next(), NotAllowed);
    await assert.rejects(hub.listen("repeated", from).next(), SegmentMismatchError);
    const continued = hub.listen("repeated", { ...from, onGap: "continue" });
    assert.deepEqual((await take(continued, 3)).map(n), [1, 2, 3]);
    await continued.return(undefined);
  }
  await assert.rejects(hub.session("no-such", { signal })[Symbol.asyncIterator]().next(), Missing);
});

test("a key may be fetched for each connection", async () => {
  let asked = 0;
  const renewing = new HubClient(url, () => ((asked += 1), Promise.resolve(key)));
  const events = renewing.listen("repeated", { start: "oldest", signal });
  await take(events, 3);
  await events.return(undefined);
  assert.equal(asked, 1);
});

test("an aborted listener ends", async () => {
  const controller = new AbortController();
  const events = hub.listen("repeated", { signal: controller.signal });
  const next = events.next();
  controller.abort();
  assert.equal((await next).done, true);
});

for (const transport of ["websocket", "sse"] as const) {
  test(`a session hands out each event once, and again what was not processed: ${transport}`, async () => {
    const stream = `session-${transport}`;
    await hub.emit(stream, numbered(1, 3));
    const session = through().session(stream, { transport, signal });
    const events = session[Symbol.asyncIterator]();
    const [one, two, three] = await take(events, 3);
    await session.acknowledge(one!, { stored: true });
    await relay.cut();
    if (transport === "websocket") await session.acknowledge(two!);
    await relay.mend();
    await hub.emit(stream, numbered(4, 4));
    const [four] = await take(events, 1); // over the next connection
    assert.deepEqual([one, two, three, four].map((event) => n(event!)), [1, 2, 3, 4]);
    await session.nak(three!);
    const [again] = await take(events, 1);
    assert.deepEqual([n(again!), again!.attempt], [3, 2]);
    if (transport === "sse") await session.acknowledge(two!);
    await session.acknowledge([again!, four!], { stored: true });
    await hub.emit(stream, numbered(5, 6));
    const [five] = await take(events, 1);
    await session.acknowledge(five!, { through: true, stored: true });
    session.close();
    const rest = hub.session(stream, { transport, signal });
    const [six] = await take(rest[Symbol.asyncIterator](), 1);
    assert.equal(n(six!), 6);
    rest.close();
  });
}

test("events of a session are pulled, extended and given back", async () => {
  const session = hub.session("session-pulled");
  assert.ok(session instanceof ConsumerSession);
  await hub.emit("session-pulled", numbered(1, 2));
  const [one, two] = await session.pull(2, { waitS: 20 });
  await session.extend(two!, 0);
  const [again] = await session.pull(2, { acknowledge: [one!], waitS: 20 });
  assert.deepEqual([n(one!), n(two!), n(again!)], [1, 2, 2]);
  assert.equal((await session.pull(0, { acknowledge: [again!] })).length, 0);
});

test("the state of a keyed stream comes first", async () => {
  await hub.emit("prices", { domain: "shop", type: "price", key: "a", attributes: { n: 1 } });
  const items = hub.state("prices", { signal });
  const first = (await items.next()).value as Delivered | Snapshot;
  assert.ok("items" in first);
  assert.deepEqual(first.items.map((item) => item.key), ["a"]);
  await hub.emit("prices", { domain: "shop", type: "price", key: "a", attributes: { n: 2 } });
  const second = (await items.next()).value as Delivered | Snapshot;
  assert.ok("event" in second);
  assert.equal(n(second), 2);
  await items.return(undefined);
});

test("the management API is typed by its paths", async () => {
  const found = await hub.call("GET", "/v1/streams/{stream}", { path: { stream: "repeated" } });
  assert.equal(found.name, "repeated");
  await assert.rejects(
    hub.call("GET", "/v1/streams/{stream}", { path: { stream: "no-such" } }),
    Missing,
  );
});
