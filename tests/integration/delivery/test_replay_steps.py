"""The steps of replay runs on a real database: exact under kill -9, and never ahead of what they
depend on.
"""

import asyncio
import json
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

from delivery.recovery.log_pages import ReplayTarget
from delivery.recovery.preview import Preview, PreviewRequest, preview
from delivery.recovery.runs import FailedParams, LogParams, StreamRange
from delivery.recovery.task import ReplayExecutor
from eventhub.base import limits
from eventhub.base.clock import SystemClock
from eventhub.postgresql.connections import connect
from tests.integration.archive_world import archive, archived_stream, fill
from tests.integration.callbacks_world import CallbacksWorld, Sent, draining, receiver, until

RUNNER = """
import sys
from delivery.recovery.task import ReplayExecutor
from eventhub.base.clock import SystemClock
while ReplayExecutor(SystemClock()).run(sys.argv[1], ""):
    pass
"""


def start(world: CallbacksWorld, endpoint: int, sent: Sent, **more: Any) -> int:
    """Insert a run over all events of a stream."""
    ranges = [
        {
            "stream_id": sent.stream_id,
            "stream": sent.name,
            "segment": sent.segment,
            "after": 0,
            "last": sent.sequences[-1],
        }
    ]
    params = {"ranges": ranges, "language": None, "filter": None}
    position = {"range": 0, "segment": sent.segment, "sequence": 0}
    values = {"rate": 5_000, "force": False, **more}
    id: int = world.one(
        "INSERT INTO replay_runs (zone_id, client_id, endpoint_id, source, requested_by, params,"
        " position, rate, force) SELECT zone_id, client_id, id, 'log', 'shop', %s, %s, %s, %s"
        " FROM endpoints WHERE id = %s RETURNING id",
        json.dumps(params), json.dumps(position), values["rate"], values["force"], endpoint,
    )  # fmt: skip
    return id


def recover(world: CallbacksWorld, endpoint: int, **more: Any) -> int:
    """Insert a run over the dead letters of an endpoint."""
    params = {"states": ["dead_lettered"], "since_us": 0, "until_us": time.time_ns() // 1_000}
    id: int = world.one(
        "INSERT INTO replay_runs (zone_id, client_id, endpoint_id, source, requested_by, params,"
        " position, rate) SELECT zone_id, client_id, id, 'deliveries', 'shop', %s, %s, %s"
        " FROM endpoints WHERE id = %s RETURNING id",
        json.dumps({**params, **more}), '{"segment_id": 0, "sequence": 0}', 5_000, endpoint,
    )  # fmt: skip
    return id


def field(world: CallbacksWorld, id: int, name: str) -> Any:
    return world.one(f"SELECT {name} FROM replay_runs WHERE id = %s", id)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let one call of the task end soon."""
    monkeypatch.setattr(limits, "REPLAY_UNIT_S", 1.0)
    monkeypatch.setattr(limits, "REPLAY_WAIT_S", 0.05)


def execute(world: CallbacksWorld) -> None:
    ReplayExecutor(SystemClock()).run(world.url, "")


def sequences(world: CallbacksWorld, endpoint: int) -> list[int]:
    rows = world.sql(
        "SELECT sequence FROM deliveries WHERE endpoint_id = %s ORDER BY sequence", endpoint
    )
    return [row[0] for row in rows]


def test_a_run_whose_process_is_killed_again_and_again_is_exact(world: CallbacksWorld) -> None:
    sent = world.events(900)
    world.deliver(sent._replace(sequences=[]), 0)  # makes the partition
    endpoint = world.endpoint("http://127.0.0.1:1/")
    id = start(world, endpoint, sent, rate=300)
    kills = 0
    while field(world, id, "state") == "running":
        process = subprocess.Popen([sys.executable, "-c", RUNNER, world.url])
        begun = field(world, id, "written")
        world.until(lambda: field(world, id, "written") > begun)  # noqa: B023
        time.sleep(0.013 * (kills % 5))  # at other moments of its next steps
        process.kill()
        process.wait()
        kills += 1
    assert kills >= 3
    assert sequences(world, endpoint) == sent.sequences
    counts = world.sql(
        "SELECT examined, matched, written, skipped, missing FROM replay_runs WHERE id = %s", id
    )
    assert counts == [(900, 900, 900, 0, 0)]


def test_it_waits_while_the_backlog_is_long(
    world: CallbacksWorld, short: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "REPLAY_PENDING_MAX", 30)
    sent = world.events(100)
    world.deliver(sent._replace(sequences=[]), 0)
    endpoint = world.endpoint("http://127.0.0.1:1/")
    id = start(world, endpoint, sent, rate=30)
    execute(world)
    execute(world)
    assert field(world, id, "waits_for") == "backlog"
    assert len(sequences(world, endpoint)) == 30
    world.sql("UPDATE deliveries SET state = 'delivered' WHERE endpoint_id = %s", endpoint)
    execute(world)
    execute(world)
    assert len(sequences(world, endpoint)) == 60


def test_it_writes_nothing_that_a_forwarder_has_yet_to_write(
    world: CallbacksWorld, short: None
) -> None:
    """The forwarder's own row would be refused as a duplicate."""
    sent = world.events(10)
    world.deliver(sent._replace(sequences=[]), 0)
    world.sql(
        "INSERT INTO forwarding (stream_id, segment, sequence) VALUES (%s, %s, 6)",
        sent.stream_id,
        sent.segment,
    )
    world.fan_out(sent, 4)
    endpoint = world.endpoint("http://127.0.0.1:1/")
    id = start(world, endpoint, sent)
    execute(world)
    assert sequences(world, endpoint) == [1, 2, 3]
    assert field(world, id, "waits_for") == "forwarder"
    world.sql("DELETE FROM fanouts WHERE stream_id = %s", sent.stream_id)
    execute(world)
    assert sequences(world, endpoint) == [1, 2, 3, 4, 5, 6]
    world.sql("UPDATE forwarding SET sequence = 10 WHERE stream_id = %s", sent.stream_id)
    execute(world)
    assert field(world, id, "state") == "completed"
    assert sequences(world, endpoint) == sent.sequences


def test_a_pending_gap_notice_comes_before_the_events_after_it(
    world: CallbacksWorld, short: None
) -> None:
    sent = world.events(6)
    endpoint = world.endpoint("http://127.0.0.1:1/", ordered=True)
    world.deliver(sent._replace(sequences=[3]), endpoint)
    notice = "UPDATE deliveries SET {} WHERE endpoint_id = %s AND sequence = 3"
    world.sql(notice.format("gap_first = 1, gap_reason = 'backlog'"), endpoint)
    id = start(world, endpoint, sent)
    execute(world)
    assert (field(world, id, "waits_for"), sequences(world, endpoint)) == ("backlog", [1, 2, 3])
    world.sql(notice.format("state = 'delivered'"), endpoint)
    execute(world)
    assert field(world, id, "state") == "completed"
    assert sequences(world, endpoint) == sent.sequences
    rows = world.sql(
        "SELECT state, gap_first FROM deliveries WHERE endpoint_id = %s AND sequence = 3", endpoint
    )
    assert rows == [("pending", None)], "the notice is the delivery of its event now"


def test_events_that_are_gone_are_counted_as_missing(world: CallbacksWorld, short: None) -> None:
    sent = world.events(4)
    world.deliver(sent._replace(sequences=[]), 0)
    endpoint = world.endpoint("http://127.0.0.1:1/")
    id = start(world, endpoint, sent)
    world.sql(
        "WITH old AS (UPDATE segments SET tier = 'dropped', last = 4, sealed_at = now()"
        " WHERE id = %s RETURNING stream_id, partition_id)"
        " INSERT INTO segments (stream_id, uuid, first, partition_id)"
        " SELECT stream_id, gen_random_uuid(), 5, partition_id FROM old",
        sent.segment_id,
    )
    execute(world)
    assert (field(world, id, "state"), field(world, id, "missing")) == ("completed", 4)
    assert sequences(world, endpoint) == []


def test_a_run_into_a_deleted_endpoint_fails(world: CallbacksWorld, short: None) -> None:
    sent = world.events(4)
    endpoint = world.endpoint("http://127.0.0.1:1/")
    id = start(world, endpoint, sent)
    world.sql("UPDATE endpoints SET deleted_at = now() WHERE id = %s", endpoint)
    execute(world)
    assert (field(world, id, "state"), field(world, id, "reason")) == ("failed", "unknown_endpoint")


async def test_archived_events_are_sent_with_the_time_of_their_append(
    world: CallbacksWorld, short: None, tmp_path: Path
) -> None:
    """The dispatcher here has no archive: the deliveries have copies of the events."""
    zone = world.one("SELECT id FROM zones WHERE name = 'default'")
    stream = archived_stream(world.url, "archived", zone_id=zone, events_max=10)
    for begin in range(1, 26, 5):
        fill(world.url, stream, 5, begin=begin)
    assert len(archive(world.url, tmp_path)) == 2
    times = dict(world.sql("SELECT sequence, appended_at FROM events e JOIN segments s"
                           " ON s.id = e.segment_id WHERE s.stream_id = %s", stream))  # fmt: skip
    world.sql(
        "WITH gone AS (UPDATE segments SET tier = 'archived' WHERE stream_id = %s"
        " AND archive_path IS NOT NULL RETURNING id)"
        " DELETE FROM events WHERE segment_id IN (SELECT id FROM gone)",
        stream,
    )
    [(segment, partition)] = world.sql(
        "SELECT uuid::text, partition_id FROM segments WHERE stream_id = %s AND first = 1", stream
    )
    sent = Sent(stream, "archived", partition, 0, segment, [])
    world.deliver(sent, 0)
    async with receiver() as sink:
        endpoint = world.endpoint(sink.url, ordered=True)
        id = start(world, endpoint, sent._replace(sequences=[25]))
        await asyncio.to_thread(ReplayExecutor(SystemClock()).run, world.url, str(tmp_path))
        assert field(world, id, "written") == 25
        async with draining(world):
            await until(lambda: world.states(endpoint) == ["delivered"] * 25)
    assert sink.sequences() == list(range(1, 26))
    for posted in sink.posted:
        body = json.loads(posted.body)
        assert datetime.fromisoformat(body["appended_at"]) == times[body["sequence"]]


async def test_recovered_dead_letters_of_an_ordered_lane_come_in_order_before_what_is_pending(
    world: CallbacksWorld, short: None
) -> None:
    sent = world.events(40)
    async with receiver() as sink:
        endpoint = world.endpoint(sink.url, ordered=True)
        world.deliver(sent, endpoint)
        world.sql(
            "UPDATE deliveries d SET zone_id = e.zone_id,"
            " state = CASE WHEN sequence <= 30 THEN 'dead_lettered' ELSE 'pending' END,"
            " finished_at = CASE WHEN sequence <= 30 THEN now() END"
            " FROM endpoints e WHERE e.id = d.endpoint_id AND e.id = %s",
            endpoint,
        )
        id = recover(world, endpoint)
        await asyncio.to_thread(execute, world)
        assert field(world, id, "written") == 30
        async with draining(world):
            await until(lambda: world.states(endpoint) == ["delivered"] * 40)
    assert sink.sequences() == sent.sequences
    assert field(world, id, "state") == "completed"


def test_a_run_with_an_error_of_the_hub_fails_and_the_others_go_on(
    world: CallbacksWorld, short: None
) -> None:
    sent = world.events(4)
    world.deliver(sent._replace(sequences=[]), 0)  # makes the partition
    endpoint = world.endpoint("http://127.0.0.1:1/")
    broken, id = start(world, endpoint, sent), start(world, endpoint, sent)
    world.sql("UPDATE replay_runs SET params = '{\"ranges\": []}' WHERE id = %s", broken)
    execute(world)
    assert (field(world, broken, "state"), field(world, broken, "reason")) == ("failed", "internal")
    assert (field(world, id, "state"), field(world, id, "written")) == ("completed", 4)


def test_a_run_whose_statements_take_too_long_does_not_stop_the_others(
    world: CallbacksWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "STATEMENT_TIMEOUT_S_MAX", 1)
    monkeypatch.setattr(limits, "REPLAY_UNIT_S", 1.0)
    sent = world.events(4)
    slow, other = (world.endpoint("http://127.0.0.1:1/", ordered=True) for _ in range(2))
    world.deliver(sent._replace(sequences=[1]), slow)
    blocked, id = start(world, slow, sent), start(world, other, sent)
    with psycopg.connect(world.url) as holder:
        holder.execute("SELECT FROM lanes WHERE endpoint_id = %s FOR UPDATE", (slow,))
        execute(world)
        assert field(world, id, "state") == "completed"
        assert field(world, blocked, "state") == "running"
    execute(world)
    assert field(world, blocked, "state") == "completed"


def test_a_run_over_a_deleted_stream_fails(world: CallbacksWorld, short: None) -> None:
    """It would wait for a forwarder for ever."""
    sent = world.events(4)
    endpoint = world.endpoint("http://127.0.0.1:1/")
    id = start(world, endpoint, sent._replace(stream_id=1_000_000))
    execute(world)
    assert (field(world, id, "state"), field(world, id, "reason")) == ("failed", "stream_deleted")


async def previewed(
    world: CallbacksWorld,
    endpoint: int,
    params: LogParams | FailedParams,
    most: int | None = None,
) -> Preview:
    zone_id = world.one("SELECT id FROM zones WHERE name = 'default'")
    target = ReplayTarget(endpoint, zone_id, "default", "shop", [])
    request = PreviewRequest(target, params, rate=100, deliveries_max=most)
    async with await connect(world.url, name="eventhub test") as connection:
        return await preview(connection, None, SystemClock(), request)


async def test_a_preview_that_ends_at_a_pending_gap_notice_is_not_exact(
    world: CallbacksWorld,
) -> None:
    sent = world.events(6)
    endpoint = world.endpoint("http://127.0.0.1:1/", ordered=True)
    world.deliver(sent._replace(sequences=[3]), endpoint)
    world.sql(
        "UPDATE deliveries SET gap_first = 1, gap_reason = 'backlog' WHERE endpoint_id = %s",
        endpoint,
    )
    found = await previewed(
        world, endpoint, LogParams((StreamRange(sent.stream_id, sent.name, sent.segment, 0, 6),))
    )
    assert (found.exact, found.total, found.examined) == (False, 6, 2)
    assert found.deliveries == 6, "estimated"
    assert [one.sequence for one in (*found.first, *found.last)] == [1, 2]


async def test_a_preview_of_a_recovery_shows_what_it_would_send(world: CallbacksWorld) -> None:
    """Not deliveries whose event is no longer stored."""
    sent = world.events(9)
    endpoint = world.endpoint("http://127.0.0.1:1/")
    world.deliver(sent, endpoint)
    world.sql("UPDATE segments SET tier = 'dropped' WHERE id = %s", sent.segment_id)
    world.sql(
        "UPDATE deliveries d SET zone_id = e.zone_id, state = 'dead_lettered', finished_at = now(),"
        " payload = CASE WHEN sequence > 4 THEN ''::bytea END"
        " FROM endpoints e WHERE e.id = d.endpoint_id AND e.id = %s",
        endpoint,
    )
    params = FailedParams(("dead_lettered",), 0, time.time_ns() // 1_000 + 60_000_000)
    found = await previewed(world, endpoint, params)
    assert (found.examined, found.deliveries, found.missing) == (9, 5, 4)
    assert [one.sequence for one in found.first] == [5, 6, 7]
    assert [one.sequence for one in found.last] == [8, 9]
    bounded = await previewed(world, endpoint, params, 2)
    assert (bounded.deliveries, bounded.last) == (2, [])
    assert [one.sequence for one in bounded.first] == [5, 6]
