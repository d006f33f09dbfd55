"""Consumer sessions that come and go: many at once, and across losses: killed web processes, long
absence, a stream that was cut.
"""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from eventhub.base import limits
from tests.acceptance.consumers import (
    SHOP,
    acknowledge,
    change,
    connect,
    consumer,
    create_session,
    numbers,
)
from tests.acceptance.wire import EVENT, HEAR_TIMEOUT_S, chunks, numbered, session, until
from tests.live import LiveHub, LiveZone

MISSED = 10_000
BODY = "x" * 2_000
GROWTH_KIB_MAX = 24 * 1024  # of 20 MB of bodies, and as much again in frames


@pytest.fixture
def orders(zone: LiveZone) -> LiveZone:
    zone.create_stream("orders")
    return zone


async def test_sessions_are_connected_side_by_side_and_other_messages_wait(
    hub: LiveHub, orders: LiveZone
) -> None:
    names = [f"s{number}" for number in range(20)]
    for name in names:
        consumer(orders, name)
    orders.emit("orders", EVENT)
    async with session(hub, orders.admin) as reader:
        for name in [*names, "s0", "unknown"]:
            await reader.say("connect", session=name)
        for name in names:
            await reader.say("ack", session=name, stream="orders", sequence=1, id=name)
        for name in names:
            await reader.say("disconnect", session=name)
        await reader.say("connect", session="s1")
        answers: list[dict[str, Any]] = []
        async with asyncio.timeout(HEAR_TIMEOUT_S):
            while len([a for a in answers if a["op"] in ("connected", "acked")]) < 41:
                answers.append(await reader.hear())
        assert {a["session"] for a in answers if a["op"] == "connected"} == {*names}
        refused = {a["session"]: a["code"] for a in answers if a["op"] == "error"}
        assert refused == {"s0": "session_connected", "unknown": "unknown_session"}, answers
        assert {a["session"] for a in answers if a["op"] == "acked"} == {*names}
        assert {a["op"] for a in answers[:22]} <= {"connected", "error", "event"}


async def test_a_connected_session_is_on_the_disk_of_the_database(
    hub: LiveHub, orders: LiveZone
) -> None:
    """Else a crash of the database would end its connection as replaced by another one."""
    consumer(orders)
    async with session(hub, orders.admin) as reader:
        await reader.say("ping", id="1")
        await reader.hear_op("pong")
        [(before,)] = hub.sql("SELECT pg_current_wal_insert_lsn()::text")
        await connect(reader)
        assert hub.sql("SELECT pg_current_wal_flush_lsn() > %s::pg_lsn", before) == [(True,)]


@pytest.mark.req("RDY-48")
async def test_a_process_killed_between_match_and_acknowledgement_loses_nothing(
    hub: LiveHub, orders: LiveZone
) -> None:
    """The session returns with its registrations in another process; what was acknowledged and
    stored does not come again.
    """
    consumer(orders)
    orders.emit("orders", numbered(1, 6))
    with pytest.raises(ConnectionClosed):
        async with session(hub, orders.admin, web=1) as reader:
            await connect(reader)
            assert await numbers(reader, 6) == [1, 2, 3, 4, 5, 6]
            await acknowledge(reader, 4, through=2)
            hub.web[1].kill()
            await reader.hear()
    try:
        async with session(hub, orders.admin) as reader:
            await connect(reader)
            assert await numbers(reader, 3) == [3, 5, 6]
            await acknowledge(reader, through=6)
            orders.emit("orders", [{**EVENT, "domain": "bank"}, EVENT])
            assert await numbers(reader, 1) == [8]
    finally:
        hub.web[1].start()
    async with session(hub, orders.admin, web=1) as reader:
        await connect(reader)
        assert await numbers(reader, 1) == [8]
        assert await reader.nothing_waits()


@pytest.mark.req("FOX-76")
async def test_ten_thousand_missed_events_come_with_flat_memory(
    hub: LiveHub, orders: LiveZone
) -> None:
    """They are in the log, not in the memory of a process; the reader acknowledges slowly enough
    that the hub could read all of them ahead.
    """
    consumer(orders, window=500)
    event = {**EVENT, "body": BODY}
    async with orders.client() as client:
        for chunk in chunks([event] * MISSED, 500):
            await client.emit("orders", chunk)
    web = hub.web[1]
    async with session(hub, orders.admin, web=1) as reader:
        await reader.nothing_waits()
        before = peak = _rss_kib(web.pid)
        await connect(reader)
        received: list[int] = []
        while len(received) < MISSED:
            received += await numbers(reader, 250)
            peak = max(peak, _rss_kib(web.pid))
            await reader.say("ack", session="s", stream="orders", sequence=received[-1])
        assert received == list(range(1, MISSED + 1))
        await acknowledge(reader, through=MISSED)
        assert await reader.nothing_waits()
    assert peak - before < GROWTH_KIB_MAX, f"{peak - before} KiB more"
    async with session(hub, orders.admin) as reader:
        await connect(reader)
        assert await reader.nothing_waits()


async def test_a_reader_that_acknowledges_nothing_costs_a_bounded_queue(
    hub: LiveHub, orders: LiveZone
) -> None:
    consumer(orders, window=10)
    async with session(hub, orders.admin, web=1) as reader:
        await connect(reader)
        before = _rss_kib(hub.web[1].pid)
        for chunk in chunks([{**EVENT, "body": "x" * 20_000}] * 4_000, 200):
            assert orders.emit("orders", chunk).status == 200
        assert await numbers(reader, 10) == list(range(1, 11))
        assert await reader.nothing_waits()
        assert _rss_kib(hub.web[1].pid) - before < 80 * 1024


async def test_events_that_are_no_longer_stored_are_reported_as_a_gap(
    hub: LiveHub, zone: LiveZone
) -> None:
    """The stream's cap wins over the session; the session goes on with what is there."""
    zone.create_stream("orders", segment_events_max=64, retain_events=64, on_lag="drop")
    consumer(zone)
    for chunk in chunks(numbered(1, 640), 64):
        zone.emit("orders", chunk)
    await until(lambda: _first(hub, zone) == 577, timeout_s=60)  # the last segment is kept
    async with session(hub, zone.admin) as reader:
        await connect(reader)
        gap = await reader.hear_op("gap")
        assert (gap["session"], gap["stream"], gap["then"]) == ("s", "orders", "events")
        first = gap["missed"]["last"] + 1
        found = await numbers(reader, 641 - first)
        assert found == list(range(first, 641))
        await acknowledge(reader, through=640)


async def test_a_session_that_only_skips_events_is_saved_too(
    hub: LiveHub, orders: LiveZone
) -> None:
    path = f"/v1/sessions/{create_session(orders)['id']}"
    orders.register({**SHOP, "domain": "bank", "session": "s"})
    orders.emit("orders", numbered(1, 50))
    async with session(hub, orders.admin) as reader:
        await connect(reader)
        orders.emit("orders", {**EVENT, "domain": "bank"})
        assert await numbers(reader, 1) == [51]
    # a connection that replaces this one before it has ended would begin where it began
    await until(lambda: not hub.call("GET", path, key=orders.admin).json["connected_process"])
    async with session(hub, orders.admin) as reader:
        [stream] = (await connect(reader))["streams"]
        assert stream["cursor"]["sequence"] == 50


async def test_positions_survive_an_outage_of_the_database(hub: LiveHub, orders: LiveZone) -> None:
    """The database refuses a save; the answer to the acknowledgement comes when one succeeds, and
    what it acknowledges is stored then.
    """
    path = f"/v1/sessions/{consumer(orders)['id']}/positions"
    orders.emit("orders", numbered(1, 3))
    async with session(hub, orders.admin) as reader:
        await connect(reader)
        assert await numbers(reader, 3) == [1, 2, 3]
        hub.sql("ALTER TABLE session_cursors RENAME TO cursors_away")
        try:
            await reader.say("ack", session="s", stream="orders", sequence=2, id="a")
            await asyncio.sleep(0)
            assert await reader.nothing_waits()
        finally:
            hub.sql("ALTER TABLE cursors_away RENAME TO session_cursors")
        assert (await reader.hear_op("acked"))["id"] == "a"
        [position] = hub.call("GET", path, key=orders.admin).json["items"]
        assert position["cursor"]["sequence"] == 2
    async with session(hub, orders.admin) as reader:
        await connect(reader)
        assert await numbers(reader, 1) == [3]


async def test_members_catch_up_after_a_change_of_quality(hub: LiveHub, orders: LiveZone) -> None:
    """A reliable session that was best effort for a while continues where it was acknowledged."""
    made = consumer(orders)
    orders.emit("orders", numbered(1, 2))
    async with session(hub, orders.admin) as reader:
        await connect(reader)
        await numbers(reader, 2)
        await acknowledge(reader, through=1)
        change(orders, made, quality="best_effort")
        await reader.hear_op("connected")
        change(orders, made, quality="reliable")
        await reader.hear_op("connected")
        assert await numbers(reader, 1) == [2]


async def test_a_best_effort_session_gets_more_events_than_a_queue_holds(
    hub: LiveHub, orders: LiveZone
) -> None:
    """What it was sent leaves the queue: nobody acknowledges it."""
    consumer(orders, quality="best_effort")
    async with session(hub, orders.admin) as reader, orders.client() as client:
        await connect(reader)
        for chunk in chunks(numbered(1, limits.SESSION_QUEUE_EVENTS_MAX + 1_000), 1_000):
            await client.emit("orders", chunk)
            assert len(await numbers(reader, 1_000)) == 1_000


def _first(hub: LiveHub, zone: LiveZone) -> int:
    """Return the first stored sequence of the stream."""
    answer = hub.call("GET", "/v1/streams/orders", key=zone.admin)
    return int(answer.json["first"])


def _rss_kib(pid: int) -> int:
    pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE") // 1024
