"""A whole hub that writes to the disk, is restarted, and is replaced by its backup: three lives of
one hub, the tests in their order (EMC-15 to 18, 28, 29, 35).
"""

import asyncio
import os
import sqlite3
import statistics
import subprocess
import time
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.acceptance import transports
from tests.acceptance.shell import COMMAND
from tests.acceptance.transports import ReceivedEvent, Refused, Transport
from tests.acceptance.whole_hub import WholeHub
from tests.acceptance.wire import EVENT, numbered
from tests.integration.up_process import HOME, manage

AT_ONCE_S = 10.0  # far below the 20 s after which an empty long poll ends
FLUSH_S = 0.1  # the longest wait before a flush that PostgreSQL can be set to
APP = {"domain": "ops", "type": "app.state"}
each_kind = pytest.mark.parametrize(
    "transport",
    [transports.socket_json, transports.server_sent, transports.long_poll],
    ids=["websocket", "sse", "poll"],
)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WholeHub]:
    """Start the hub in its first life; it flushes commits to the disk."""
    running = WholeHub(tmp_path_factory.mktemp("lives"))
    try:
        yield running
    finally:
        running.close()


class Known(NamedTuple):
    """The positions that clients held before the restart."""

    boot: dict[str, Any]
    postgres: object  # when the server started
    half: str
    ticks: str


@pytest.fixture(scope="module")
def restarted(shop: WholeHub) -> Known:
    """End the first life with SIGTERM and start the second."""
    shop.create_stream("apps", keyed=True, restate=True)
    for number in range(2):
        app = {**APP, "attributes": {"n": number}, "environment": {"rack": "7"}}
        keys = ("a", "b", "c", "gone")
        shop.emit("apps", [{**app, "key": key, "id": f"{key}{number}"} for key in keys])
    shop.emit("apps", [{**APP, "key": "gone", "tombstone": True}, {**APP, "type": "keyless"}])
    shop.create_stream("half", segment_events_max=100)
    shop.create_stream("ticks", durability="transient", retain_events=10)
    known = Known(
        boot=shop.get("boot"),
        postgres=started_at(shop),
        half=shop.emit("half", numbered(1, 50)),
        ticks=shop.emit("ticks", numbered(1, 25)),
    )
    shop.stop()
    shop.start()
    return known


class Lost(NamedTuple):
    """The positions that clients held before the store was replaced."""

    orders: str  # (U1, 500) of an empty stream in the backup
    half: str  # ahead of the backup
    half_known: str  # the last event in the backup


@pytest.fixture(scope="module")
def consumer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("consumer")


@pytest.fixture(scope="module")
def restored(
    shop: WholeHub, restarted: Known, consumer: Path, tmp_path_factory: pytest.TempPathFactory
) -> Lost:
    """Make a backup, emit 500 events, replace the store by the backup, and emit 20 events."""
    backup = tmp_path_factory.mktemp("backup") / "var"
    shop.create_stream("orders")
    half_known = shop.emit("half", EVENT)
    shop.back_up(backup)
    lost = Lost(shop.emit("orders", numbered(1, 500)), shop.emit("half", [EVENT] * 3), half_known)
    consume(shop, consumer, 500)
    shop.wait_marked(lost.half)
    shop.kill()
    shop.restore(backup)
    shop.start()
    shop.emit("orders", numbered(1001, 1020))
    return lost


def consume(shop: WholeHub, folder: Path, count: int) -> None:
    """Run a consumer that continues at its cursor and deduplicates in a table."""
    words = ["listen", "orders", "--quiet", "--from", "oldest", "--on-gap", "continue"]
    words += ["--count", str(count)]
    files = {name: str(folder / name) for name in ("sqlite", "cursor-file", "file")}
    words += [word for name, file in files.items() for word in (f"--{name}", file)]
    env = {**os.environ, "EVENTHUB_URL": shop.live.url, "EVENTHUB_KEY": shop.key}
    subprocess.run([*COMMAND, *words], env=env, check=True, timeout=30, capture_output=True)


def configure(shop: WholeHub, *changes: str) -> None:
    """Change settings of the PostgreSQL server, and let it read them."""
    for change in changes:
        shop.live.sql(f"ALTER SYSTEM {change}")
    shop.live.sql("SELECT pg_reload_conf()")


def started_at(shop: WholeHub) -> object:
    [(at,)] = shop.live.sql("SELECT pg_postmaster_start_time()")
    return at


async def first_of(
    shop: WholeHub, transport: Transport, stream: str, start: str, count: int = 1
) -> list[ReceivedEvent]:
    """Return the first events of a listener, which must be there at once."""
    found: list[ReceivedEvent] = []
    received = transport(shop.listener(stream, start))
    async with asyncio.timeout(AT_ONCE_S), aclosing(received) as events:  # type: ignore[type-var]
        async for one in events:
            found.append(one)
            if len(found) == count:
                break
    return found


# --- the first life ---


@pytest.mark.req("EMC-29")
def test_a_sync_emit_waits_for_the_disk_and_an_async_one_is_faster(shop: WholeHub) -> None:
    """The server reports how far its WAL is flushed. Its WAL writer sleeps here, so a commit that
    waits flushes it, and one that does not leaves it to others: other tasks of the hub commit, too.
    The server is slow to flush: an emit that does not wait is answered before.
    """
    for name in ("sync", "async"):
        shop.create_stream(name, durability=name)
        assert f"`{name}`" in (HOME / "docs" / "durability.md").read_text()
    configure(shop, "SET wal_writer_delay = '10s'", "SET wal_writer_flush_after = '1GB'")
    configure(shop, f"SET commit_delay = {FLUSH_S * 1e6:.0f}", "SET commit_siblings = 0")
    flushed: dict[str, list[bool]] = {"sync": [], "async": []}
    took_s: dict[str, list[float]] = {"sync": [], "async": []}
    try:
        for turn in range(20):
            for name in sorted(flushed, reverse=turn % 2 == 0):  # each as often after the other
                [(before,)] = shop.live.sql("SELECT pg_current_wal_insert_lsn()")
                began_s = time.perf_counter()
                shop.emit(name, EVENT)
                took_s[name].append(time.perf_counter() - began_s)
                [(done,)] = shop.live.sql("SELECT pg_current_wal_flush_lsn() > %s", before)
                flushed[name].append(done)
    finally:
        configure(shop, "RESET commit_delay", "RESET commit_siblings")
    assert all(flushed["sync"])
    assert flushed["async"].count(False) >= 5, flushed
    medians = {name: statistics.median(found) for name, found in took_s.items()}
    assert medians["async"] < FLUSH_S <= medians["sync"], medians


# --- the second life, after a restart ---


@pytest.mark.req("EMC-17")
@each_kind
async def test_a_listener_from_the_boot_position_begins_with_the_start_marker(
    shop: WholeHub, restarted: Known, transport: Transport
) -> None:
    boot = shop.get("boot")
    assert boot["stream"] == "system"
    assert boot["sequence"] > restarted.boot["sequence"]
    for start in (f"{boot['segment']}:{boot['sequence']}", "boot"):
        [first] = await first_of(shop, transport, "system", start)
        assert (first.event["domain"], first.event["type"]) == ("eventhub", "hub.started")
        assert first.sequence == boot["sequence"] + 1
        assert "zone" not in first.event["attributes"]
    assert shop.read("half", "boot") == []


@pytest.mark.req("EMC-18")
def test_the_state_of_three_applications_follows_the_start_marker(
    shop: WholeHub, restarted: Known
) -> None:
    marker, *state = [one["event"] for one in shop.read("apps", "boot")]
    assert marker["type"] == "hub.started"
    assert sorted(one["key"] for one in state) == ["a", "b", "c"]
    for one in state:
        assert one["environment"] == {"rack": "7", "reason": "restart"}
        assert (one["attributes"], one["source"]) == ({"n": 1}, "shop")
        assert "id" not in one  # it is another event ...
        segment, sequence = one["cause"].split(":")  # ... caused by the first
        was = shop.get(f"streams/apps/events/{sequence}")
        assert (was["segment"], was["key"], was["attributes"]) == (segment, one["key"], {"n": 1})
    shown = shop.get("streams/apps/state")["items"]
    reasons = {item["key"]: item["event"]["environment"]["reason"] for item in shown}
    assert reasons == dict.fromkeys("abc", "restart")


@pytest.mark.req("EMC-28")
def test_a_half_full_segment_keeps_its_uuid_when_everything_is_restarted(
    shop: WholeHub, restarted: Known
) -> None:
    """The store, too: PostgreSQL was ended and started. The segment goes on until it is full."""
    assert started_at(shop) != restarted.postgres
    segment = restarted.half.split(":")[0]
    assert shop.get("streams/half/segments/current")["uuid"] == segment
    found = shop.read("half", "oldest")
    assert [(one["segment"], one["sequence"]) for one in found] == (
        [(segment, sequence) for sequence in range(1, 51)]
    )
    assert [one["event"]["attributes"]["n"] for one in found] == list(range(1, 51))
    shop.emit("half", numbered(51, 101))
    assert [one["sequence"] for one in shop.read("half", "boot")] == list(range(51, 102))
    sealed, opened = shop.get("streams/half/segments")["items"]
    assert (sealed["uuid"], sealed["last"], sealed["state"]) == (segment, 100, "sealed")
    assert (opened["first"], opened["state"]) == (101, "open")


@pytest.mark.req("EMC-35")
@each_kind
async def test_a_transient_stream_begins_again_under_another_uuid_when_redis_was_restarted(
    shop: WholeHub, restarted: Known, transport: Transport
) -> None:
    with pytest.raises(Refused) as caught:
        await first_of(shop, transport, "ticks", restarted.ticks)
    assert caught.value.code == "segment_mismatch"
    segment, sequence = shop.emit("ticks", EVENT).split(":")
    assert segment != restarted.ticks.split(":")[0]
    assert caught.value.problem["current"]["segment"] == segment
    assert [one["sequence"] for one in shop.read("ticks", "oldest")] == [
        *range(1, int(sequence) + 1)
    ]


# --- the third life, on a backup ---


@pytest.mark.req("EMC-15")
@each_kind
async def test_a_listener_of_a_replaced_store_gets_a_mismatch_at_once(
    shop: WholeHub, restored: Lost, transport: Transport
) -> None:
    """It holds (U1, 500); the log ends with 20 of the same numbers, and nothing else comes."""
    current = shop.get("streams/orders/segments/current")["uuid"]
    held, sequence = restored.orders.split(":")
    assert (current != held, sequence) == (True, "500")
    for start in (restored.orders, f"{held}:20"):
        with pytest.raises(Refused) as caught:
            await first_of(shop, transport, "orders", start)
        assert caught.value.code == "segment_mismatch"
        assert caught.value.problem["current"] == {"segment": current, "first": 1, "last": 20}
    received = await first_of(shop, transport, "orders", f"{current}:0", 20)
    assert [one.event["attributes"]["n"] for one in received] == list(range(1001, 1021))


@pytest.mark.req("EMC-16")
def test_a_consumer_stores_reused_sequences_of_the_new_segment_as_new_events(
    shop: WholeHub, restored: Lost, consumer: Path
) -> None:
    consume(shop, consumer, 20)
    held, current = restored.orders.split(":")[0], shop.get("streams/orders/segments/current")
    with sqlite3.connect(consumer / "sqlite") as db:
        stored = db.execute(
            "SELECT segment, sequence, event ->> '$.attributes.n' FROM events ORDER BY 3"
        ).fetchall()
    expected = [(held, n, n) for n in range(1, 501)]
    expected += [(current["uuid"], n, 1000 + n) for n in range(1, 21)]
    assert stored == expected
    assert len((consumer / "file").read_text().splitlines()) == 520  # each delivered once


def test_listeners_that_are_not_ahead_of_the_backup_continue(
    shop: WholeHub, restored: Lost
) -> None:
    passed = shop.emit("half", [EVENT] * 4)
    ahead, known = restored.half.split(":"), restored.half_known.split(":")
    assert int(passed.split(":")[1]) > int(ahead[1])
    path = f"streams/half/events?from={restored.half}"
    shop.ask("GET", path).refused(409, "segment_mismatch")
    after = [one["sequence"] for one in shop.read("half", restored.half_known)]
    assert after == [int(known[1]) + n for n in range(1, 5)]


def test_a_dump_is_restored_into_the_stopped_hubs_folder(
    shop: WholeHub, restored: Lost, tmp_path: Path
) -> None:
    """The command starts the hub's own database for it."""
    dump = str(tmp_path / "hub.dump")
    manage("backup", dump, DATABASE_URL=shop.env["DATABASE_URL"])
    shop.stop()
    output = manage("restore", dump, "--data", str(shop.data))
    assert output.endswith("streams have new segments\n")
