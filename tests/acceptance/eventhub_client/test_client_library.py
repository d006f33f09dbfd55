"""The client library against the running hub: every transport, gaps, replay, keyed state, the
synchronous client, and the relation of events to the client's own changes (EMC-11).
"""

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest
from eventhub_client.errors import (
    Changed,
    GapError,
    InvalidRequest,
    Missing,
    NotAllowed,
    SegmentMismatchError,
)
from eventhub_client.relation import Relation, relation
from eventhub_client.remote import HubClient
from eventhub_client.sync import SyncHubClient
from eventhub_client.transports import Transport
from eventhub_client.typecache import Newer, TypeCache, TypeMismatch
from eventhub_client.types import At, Cursor, Delivered, Start

from tests.acceptance.cut import way
from tests.acceptance.wire import EVENT, numbered, until
from tests.live import LiveHub, LiveZone

TRANSPORTS: tuple[Transport, ...] = ("websocket", "sse", "poll")
each_transport = pytest.mark.parametrize("transport", TRANSPORTS)
WAIT_S = 30.0


async def take(items: AsyncIterator[Delivered], count: int) -> list[Delivered]:
    """Return the next `count` events; the listener stays open."""
    async with asyncio.timeout(WAIT_S):
        return [await anext(items) for _ in range(count)]


def ns(events: list[Delivered]) -> list[int]:
    return [delivered.event["attributes"]["n"] for delivered in events]


def of(key: str, n: int) -> dict[str, Any]:
    return {**EVENT, "key": key, "attributes": {"n": n}}


@pytest.mark.req("EMC-11")
async def test_the_relation_of_events_to_the_clients_own_put_follows_from_sequences_alone(
    zone: LiveZone,
) -> None:
    """29 is before the client's PUT, 30 is the PUT, 31 is after it and makes its copy stale."""
    zone.create_stream("things", keyed=True)
    zone.emit("things", numbered(1, 28))
    zone.emit("things", of("r", 29))
    async with (
        zone.client() as client,
        aclosing(client.listen("things", start="oldest")) as listen,  # type: ignore[type-var]
    ):
        reply = await client.reply("PUT", "/v1/streams/things/state/r", {**EVENT, "attributes": {}})
        assert reply.caused is not None
        assert (reply.caused.first, reply.caused.last) == (30, 30)
        other = zone.key("emit:things", client="other")
        zone.emit("things", of("r", 31), key=other)
        zone.emit("things", of("s", 32), key=other)
        found = {event.sequence: event for event in await take(listen, 32)}
    for own in (30, reply.caused, reply):
        assert relation(own, found[29], about="r") == Relation("before")
        assert relation(own, found[30], about="r") == Relation("own")
        assert relation(own, found[31], about="r") == Relation("after", stale=True)
        assert relation(own, found[32], about="r") == Relation("after", stale=False)
    assert relation(30, found[32], about=lambda event: event["key"] == "s").stale


@each_transport
async def test_a_listener_resumes_after_each_loss_of_its_connection(
    hub: LiveHub, zone: LiveZone, transport: Transport
) -> None:
    zone.create_stream("orders")
    async with (
        way(hub) as between,
        HubClient(between.url, zone.admin) as client,
        aclosing(
            client.listen("orders", start="oldest", transport=transport, domain="shop")
        ) as listen,  # type: ignore[type-var]
    ):
        received: list[int] = []
        for round in range(4):
            zone.emit("orders", numbered(round * 3 + 1, round * 3 + 3))
            zone.emit("orders", {**EVENT, "domain": "else"})
            received += ns(await take(listen, 3))
            await between.cut()
            await between.mend()
    assert received == list(range(1, 13))


@each_transport
async def test_events_missed_during_an_outage_have_liveness_recovery(
    hub: LiveHub, zone: LiveZone, transport: Transport
) -> None:
    zone.create_stream("orders")
    zone.emit("orders", numbered(1, 1))
    async with (
        way(hub) as between,
        HubClient(between.url, zone.admin) as client,
        aclosing(client.listen("orders", start="oldest", transport=transport)) as listen,  # type: ignore[type-var]
    ):
        [first] = await take(listen, 1)
        await between.cut()
        zone.emit("orders", numbered(2, 2))
        await between.mend()
        [second] = await take(listen, 1)
    assert [first.sequence, second.sequence] == [1, 2]
    assert second.liveness == "recovery"


async def drop_first_segments(zone: LiveZone, stream: str, last: int) -> Cursor:
    """Mark the segments up to `last` as dropped; return the cursor of the first event."""
    async with zone.client() as client:
        first = (await client.page(stream, limit=1)).events[0].cursor
    zone.hub.sql(
        "UPDATE segments SET tier = 'dropped', removed_at = now(), removal_reason = 'count'"
        " WHERE last <= %s AND stream_id = (SELECT s.id FROM streams s"
        " JOIN zones z ON z.id = s.zone_id WHERE s.name = %s AND z.name = %s)",
        last,
        stream,
        zone.name,
    )
    return first


@each_transport
async def test_a_gap_error_names_the_missing_events_and_the_cursor_to_resume_from(
    zone: LiveZone, transport: Transport
) -> None:
    zone.create_stream("orders", segment_events_max=10)
    zone.emit("orders", numbered(1, 35))
    first = await drop_first_segments(zone, "orders", 20)
    async with zone.client() as client:
        with pytest.raises(GapError) as caught:
            await take(client.listen("orders", start=first, transport=transport), 1)
        assert caught.value.missing is not None
        assert (caught.value.missing.first, caught.value.missing.last) == (2, 20)
        on = client.listen("orders", start=caught.value.resume, transport=transport)
        assert ns(await take(on, 2)) == [21, 22]
        reported: list[GapError | SegmentMismatchError] = []

        def hook(error: GapError | SegmentMismatchError) -> Start:
            reported.append(error)
            return error.resume

        for on_gap in ("continue", hook):
            listen = client.listen("orders", start=first, transport=transport, on_gap=on_gap)
            assert ns(await take(listen, 2)) == [21, 22]
        assert len(reported) == 1


@each_transport
async def test_a_cursor_of_another_log_raises_a_segment_mismatch(
    zone: LiveZone, transport: Transport
) -> None:
    zone.create_stream("orders")
    zone.emit("orders", numbered(1, 2))
    other = Cursor("00000000-0000-4000-8000-000000000000", 5)
    async with zone.client() as client:
        with pytest.raises(SegmentMismatchError) as caught:
            await take(client.listen("orders", start=other, transport=transport), 1)
        assert caught.value.current["first"] == 1
        listen = client.listen("orders", start=other, transport=transport, on_gap="continue")
        assert ns(await take(listen, 2)) == [1, 2]


async def test_history_goes_forward_backward_and_by_time(zone: LiveZone) -> None:
    zone.create_stream("orders", segment_events_max=300)
    zone.emit("orders", numbered(1, 700))
    async with zone.client() as client:
        middle = [e async for e in client.history("orders")][349]
        zone.emit("orders", numbered(701, 1300, domain="else"))
        assert ns([e async for e in client.history("orders")]) == list(range(1, 1301))
        back = [e async for e in client.history("orders", order="backward")]
        assert ns(back) == list(range(1300, 0, -1))
        found = [e async for e in client.history("orders", start=middle.cursor, domain="else")]
        assert ns(found) == list(range(701, 1301))
        later = [e async for e in client.history("orders", start=At.of("2100-01-01T00:00:00Z"))]
        assert later == []
        earlier = client.history("orders", start=At.of("2020-01-01T00:00:00Z"))
        assert ns([e async for e in earlier])[:2] == [1, 2]


async def test_a_replay_ends_at_its_bound_and_survives_a_lost_connection(
    hub: LiveHub, zone: LiveZone
) -> None:
    zone.create_stream("orders")
    body = {"text": "x" * 2_000}
    for at in range(0, 3000, 500):
        zone.emit("orders", numbered(at + 1, at + 500, body=body))
    found = []
    async with way(hub) as between, HubClient(between.url, zone.admin) as client:
        until = Cursor("", 2500)
        async for delivered in client.replay("orders", until=until):
            found.append(delivered)
            if len(found) in (100, 1500):
                await between.cut()
                await between.mend()
    assert ns(found) == list(range(1, 2501))
    assert {delivered.liveness for delivered in found} <= {"playback"}


async def test_the_state_of_a_keyed_stream_stays_right_after_a_gap(
    hub: LiveHub, zone: LiveZone
) -> None:
    zone.create_stream("prices", keyed=True, segment_events_max=5)
    zone.emit("prices", [of("a", 1), of("b", 2), of("c", 3), of("a", 4)])
    async with way(hub) as between, HubClient(between.url, zone.admin) as client:
        async with client.state("prices") as state:
            assert {key: item.sequence for key, item in state.items()} == {"a": 4, "b": 2, "c": 3}
            zone.emit("prices", {**of("b", 5), "tombstone": True})
            async with asyncio.timeout(WAIT_S):
                await state.reached(5)
            assert sorted(state) == ["a", "c"]
            await between.cut()
            zone.emit("prices", [of(key, n) for n, key in enumerate("deadbead", 6)])
            zone.emit("prices", {**of("c", 14), "tombstone": True})
            await drop_first_segments(zone, "prices", 10)
            await between.mend()
            async with asyncio.timeout(WAIT_S):
                await state.reached(14)
            assert {key: item.sequence for key, item in state.items()} == {
                "a": 12,
                "b": 10,
                "d": 13,
                "e": 11,
            }
        items, cursor = await client.snapshot("prices")
    assert (sorted(items), cursor.sequence) == (["a", "b", "d", "e"], 14)


@pytest.mark.req("FOX-20")
async def test_a_definition_is_fetched_once_for_each_version_and_old_ones_are_kept(
    hub: LiveHub, zone: LiveZone
) -> None:
    zone.create_stream("orders")

    zone.create_stream("probe")

    async def declare(schema: dict[str, Any], **refused: Any) -> None:
        """Declare the type, and wait until the web process refuses what it does not allow."""
        path = "/v1/types/shop/order.placed"
        assert hub.call("PUT", path, {"schema": schema}, key=zone.admin).status == 201
        probe = {**EVENT, "attributes": refused}
        await until(lambda: zone.emit("probe", probe).status == 422)

    notices: list[Newer] = []
    first = {"properties": {"n": {"type": "integer"}}, "required": ["n"]}
    await declare(first)
    zone.emit("orders", numbered(1, 1000))
    async with way(hub) as between, HubClient(between.url, zone.admin) as client:
        cache = TypeCache(client, notices.append)

        def fetches() -> int:
            return between.sent.count(b"GET /v1/types/")

        live = client.listen("orders", start="oldest")
        for delivered in await take(live, 1000):
            parsed = await cache.parse(delivered)
            assert parsed.definition is not None
            assert (parsed.definition.version, parsed.definition.schema) == ("1", first)
        assert (fetches(), notices) == (1, [])
        more = {"n": {"type": "integer"}, "m": {"type": "integer"}}
        await declare({**first, "properties": more}, n=1, m="x")
        zone.emit("orders", {**EVENT, "attributes": {"n": 1001, "m": 5}})
        [second] = await take(live, 1)
        new = await cache.parse(second)
        assert new.definition is not None
        assert (new.definition.version, fetches(), notices) == ("2", 2, [])
        cursor = second._replace(sequence=999).cursor
        [missed] = await take(client.listen("orders", start=cursor), 1)
        assert (missed.liveness, missed.event["version"]) == ("recovery", "1")
        old = await cache.parse(missed)
        assert old.definition is not None
        assert (old.definition.version, fetches()) == ("1", 2)
        assert notices == [Newer("shop", "order.placed", "1", "2")]
        wrong = missed._replace(event={**missed.event, "attributes": {"n": "x"}})
        with pytest.raises(TypeMismatch, match="version 1"):
            await cache.parse(wrong)


async def test_each_refusal_has_its_own_exception(zone: LiveZone) -> None:
    zone.create_stream("orders")
    reader = zone.key("listen:*", client="reader")
    async with zone.client() as client, zone.client(key=reader) as only_reads:
        with pytest.raises(Missing):
            await client.emit("other", EVENT)
        with pytest.raises(NotAllowed):
            await only_reads.emit("orders", EVENT)
        with pytest.raises(InvalidRequest) as caught:
            await client.emit("orders", [EVENT, {"domain": "shop"}])
        assert caught.value.position == {"index": 1, "field": "type"}
        reply = await client.reply("GET", "/v1/streams/orders")
        await client.reply("PUT", "/v1/streams/orders", {"retain_events": 5})
        with pytest.raises(Changed):
            await client.reply(
                "PUT", "/v1/streams/orders", {"retain_events": 6}, if_match=reply.etag
            )


def test_the_synchronous_client_has_the_same_calls(zone: LiveZone) -> None:
    zone.create_stream("prices", keyed=True)
    with SyncHubClient(zone.hub.url, zone.admin) as hub:
        receipt = hub.emit("prices", [of("a", 1), of("b", 2)])
        listen = hub.listen("prices", start="oldest")
        first, second = next(listen), next(listen)
        assert second.cursor == receipt.cursor
        listen.close()  # type: ignore[attr-defined]
        with hub.state("prices") as state:
            assert dict(state)["a"].event["attributes"] == {"n": 1}
            cursor = hub.emit("prices", of("a", 3)).cursor
            state.reached(cursor.sequence)
            assert (state["a"].sequence, state.cursor) == (3, cursor)
        assert ns(list(hub.history("prices"))) == [1, 2, 3]
        assert ns(list(hub.replay("prices", start=first.cursor))) == [2, 3]
        assert len(hub.page("prices", limit=2).events) == 2
        assert hub.event("prices", 3)["sequence"] == 3
        assert "prices" in {stream["name"] for stream in hub.streams()}
        assert hub.segments("prices")[0]["first"] == 1
        with pytest.raises(Missing):
            next(hub.listen("other"))


INTERRUPTED = """
import sys
from eventhub_client.sync import SyncHubClient
with SyncHubClient(*sys.argv[1:3]) as hub:
    try:
        for event in hub.listen("orders", start="oldest"):
            print(event.sequence, flush=True)
    except KeyboardInterrupt:
        print("interrupted", len(hub.streams()), flush=True)
"""


def test_ctrl_c_ends_a_synchronous_listener_and_the_client_stays_usable(zone: LiveZone) -> None:
    zone.create_stream("orders")
    zone.emit("orders", numbered(1, 1))
    argv = [sys.executable, "-c", INTERRUPTED, zone.hub.url, zone.admin]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "1\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=WAIT_S)
    assert (process.returncode, out, err) == (0, "interrupted 2\n", "")
