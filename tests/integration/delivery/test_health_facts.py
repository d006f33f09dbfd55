"""What web processes read of the hub's health: in few round trips, and while a table cannot be
read.
"""

import re
from itertools import pairwise
from pathlib import Path

import psycopg

from delivery.health import facts
from delivery.health.heartbeat import HeartbeatWriter
from eventhub.postgresql.connections import Connection, connect
from tests.integration.callbacks_world import CallbacksWorld


async def test_late_deliveries_are_unknown_if_they_cannot_be_found_in_time(
    world: CallbacksWorld,
) -> None:
    async with (
        await connect(world.url, name="eventhub test") as connection,
        await connect(world.url, name="eventhub test") as other,
    ):
        async with other.transaction():
            await other.execute("LOCK TABLE lanes IN ACCESS EXCLUSIVE MODE")
            found = await facts.read(connection)
        assert (found.overdue, found.overdue_us) == (False, None)
        assert found.now_us > 0
        again = await facts.read(connection)
        assert (again.overdue, again.overdue_us) == (True, None)


async def test_a_check_takes_three_round_trips_and_leaves_no_settings(
    world: CallbacksWorld, tmp_path: Path
) -> None:
    trace = tmp_path / "trace"
    async with await connect(world.url, name="eventhub test") as connection:
        before = await settings_of(connection)
        with trace.open("w") as file:
            connection.pgconn.trace(file.fileno())
            await facts.read(connection)
            connection.pgconn.untrace()
        assert await settings_of(connection) == before
    senders = re.findall(r"^[^\t\n]+\t([FB])\t", trace.read_text(), re.MULTILINE)
    assert list(pairwise(senders)).count(("F", "B")) == 3


def test_the_timetable_learns_what_its_tasks_would_find(world: CallbacksWorld) -> None:
    heartbeats = HeartbeatWriter(world.url)

    def found() -> tuple[bool, ...]:
        facts = heartbeats.timetable()
        assert facts is not None
        return facts[1:]

    assert found() == (False, False, False)
    endpoint = world.endpoint("http://127.0.0.1:1/")
    stream = world.events(1).stream_id
    world.sql(
        "INSERT INTO replay_runs (zone_id, client_id, endpoint_id, source, requested_by, params,"
        " position, rate)"
        " SELECT zone_id, client_id, id, 'log', 'shop', '{}', '{}', 1 FROM endpoints WHERE id = %s",
        endpoint,
    )
    assert found() == (True, False, False)
    world.sql("UPDATE replay_runs SET state = 'completed', ended_at = now()")
    assert found() == (False, False, False)
    world.sql("UPDATE replay_runs SET ended_at = now() - interval '1 year'")
    assert found() == (True, False, False)
    world.sql("DELETE FROM replay_runs")
    world.sql("UPDATE endpoints SET expires_at = now() + interval '1 hour' WHERE id = %s", endpoint)
    assert found() == (False, False, False)
    world.sql("UPDATE endpoints SET expires_at = now() WHERE id = %s", endpoint)
    assert found() == (False, True, False)
    world.sql("UPDATE streams SET deletes_at = now() + interval '1 hour' WHERE id = %s", stream)
    assert found() == (False, True, False)
    world.sql("UPDATE streams SET deletes_at = now() WHERE id = %s", stream)
    assert found() == (False, True, True)
    first = heartbeats.timetable()
    world.events(1)
    second = heartbeats.timetable()
    assert first and second and first.log != second.log


def test_a_locked_table_does_not_stop_the_heartbeat_of_the_timetable(world: CallbacksWorld) -> None:
    """The hub reported that no periodic task was started, while all were."""
    heartbeats = HeartbeatWriter(world.url)
    beats = "SELECT last_seen_at FROM heartbeats WHERE part = 'beat'"
    assert heartbeats.timetable() is not None
    before = world.sql(beats)
    with psycopg.connect(world.url) as other:
        other.execute("LOCK TABLE endpoints IN ACCESS EXCLUSIVE MODE")
        assert heartbeats.timetable() is None
        assert world.sql(beats) > before
    assert heartbeats.timetable() is not None


async def settings_of(connection: Connection) -> list[tuple[str, str]]:
    names = ["statement_timeout", "enable_seqscan", "jit"]
    query = "SELECT name, setting FROM pg_settings WHERE name = ANY (%s) ORDER BY name"
    return await (await connection.execute(query, (names,))).fetchall()
