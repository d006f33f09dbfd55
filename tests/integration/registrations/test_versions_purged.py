"""Ended versions of registrations are deleted when nothing can read them, and no sooner."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from delivery.forward.leases import Lease
from delivery.forward.stream_matchers import StreamMatchers
from eventhub.base import limits
from eventhub.base.clock import ManualClock, SystemClock
from eventhub.celery import app
from eventhub.event.envelope import Event
from eventhub.worker.beat import TIMETABLE
from registrations.match_index.epochs.build import build_stream
from registrations.match_index.epochs.state import state_of
from registrations.match_index.epochs.verify import verify_stream
from registrations.purge import Purged, VersionPurge
from tests.integration.forward_world import World, interests_alone, place, world_database

world = pytest.fixture(scope="module")(world_database)
interests = pytest.fixture(interests_alone)
EVENT = Event("d", "a", {})


@pytest.fixture(autouse=True)
def connection(world: World) -> Iterator[psycopg.Connection[Any]]:
    """Yield a connection; versions of other tests are skipped."""
    world.sql("UPDATE barriers SET created_at = now()")
    with psycopg.connect(world.url, autocommit=True) as connection:
        yield connection


def purge(world: World, data: Path) -> Purged:
    return VersionPurge(SystemClock()).run(world.url, data)


def age(world: World) -> None:
    """Backdate all changes so far."""
    world.sql("UPDATE barriers SET created_at = now() - make_interval(secs => %s)",
              limits.VERSIONS_RETAINED_S + 60)  # fmt: skip


def versions(world: World, *registrations: int) -> int:
    query = "SELECT count(*) FROM registration_versions WHERE registration_id = ANY (%s)"
    return int(world.sql(query, list(registrations))[0][0])


def drop(world: World, stream_id: int, tier: str = "dropped") -> None:
    """Mark all segments so far as dropped."""
    world.sql(
        "WITH sealed AS (UPDATE segments g SET last = h.sequence, bytes = 0, tier = %s FROM heads h"
        "  WHERE g.stream_id = h.stream_id AND g.stream_id = %s AND g.last IS NULL"
        "  RETURNING g.partition_id, g.stream_id),"
        " opened AS (INSERT INTO segments (uuid, stream_id, partition_id, first)"
        "  SELECT gen_random_uuid(), s.stream_id, s.partition_id, h.sequence + 1"
        "    FROM sealed s JOIN heads h USING (stream_id) RETURNING id, uuid, stream_id, first)"
        " UPDATE heads h SET segment_id = o.id, segment = o.uuid, first = o.first, bytes = 0"
        "   FROM opened o WHERE h.stream_id = o.stream_id",
        *(tier, stream_id),
    )


def end(world: World, registration: int, on: list[int]) -> None:
    """End a registration at a barrier of several streams that a suspension refers to as well."""
    world.suspend(world.group(), on)
    world.sql(
        "UPDATE registration_versions SET until_barrier = (SELECT max(id) FROM barriers)"
        " WHERE registration_id = %s",
        registration,
    )


class Ended:
    """A registration that held for two events of a stream; they have left the log, the forwarder
    has passed them, and all is long ago.
    """

    def __init__(self, world: World, **policy: Any) -> None:
        self.world = world
        self.stream = world.stream(**policy)
        [self.endpoint] = world.endpoints()
        [self.registration] = world.register(self.stream, [self.endpoint], "a")
        world.emit(self.stream, "a", "a")
        world.change(self.registration, self.stream, None)
        [[self.id]] = world.sql(
            "SELECT id FROM registration_versions WHERE registration_id = %s", self.registration
        )
        world.emit(self.stream, "a")
        drop(world, self.stream)
        place(world, self.stream, 3)
        age(world)

    def set(self, query: str, *args: Any) -> None:
        self.world.sql(query, *args)

    def place(self, sequence: int) -> None:
        query = "UPDATE forwarding SET sequence = %s WHERE stream_id = %s"
        self.set(query, sequence, self.stream)

    def tier(self, tier: str) -> None:
        query = "UPDATE segments SET tier = %s WHERE stream_id = %s AND last IS NOT NULL"
        self.set(query, tier, self.stream)

    def deliver(self, state: str) -> None:
        [[group]] = self.world.sql("SELECT current_partition FROM log_state")
        self.set(
            f"CREATE TABLE IF NOT EXISTS deliveries_p{group} PARTITION OF deliveries"
            f" FOR VALUES IN ({group})"
        )
        self.set("DELETE FROM deliveries WHERE endpoint_id = %s", self.endpoint)
        self.set(
            "INSERT INTO deliveries (partition_id, endpoint_id, segment_id, sequence, stream_id,"
            " registrations, version_ids, state)"
            " SELECT l.current_partition, %s, h.segment_id, 1, h.stream_id, '{1}',"
            " ARRAY[%s]::bigint[],"
            " %s FROM log_state l, heads h WHERE h.stream_id = %s",
            *(self.endpoint, self.id, state, self.stream),
        )
        self.set("UPDATE registration_versions SET report = '{}' WHERE id = %s", self.id)

    def fan_out(self, sequence: int) -> None:
        self.set("DELETE FROM fanouts WHERE stream_id = %s", self.stream)
        self.set(
            "INSERT INTO fanouts (partition_id, stream_id, segment_id, sequence, endpoints,"
            " registrations, ends, total) VALUES (1, %s, 1, %s, '{1}', '{1}', '{1}', 1)",
            *(self.stream, sequence),
        )

    def end_again(self, interval: str) -> None:
        self.set(
            "UPDATE barriers SET created_at = now() - %s::interval WHERE id IN"
            " (SELECT until_barrier FROM registration_versions WHERE id = %s)",
            *(interval, self.id),
        )


@pytest.mark.parametrize(
    ("keep", "free"),
    [
        (lambda one: one.tier("live"), lambda one: one.tier("dropped")),
        (lambda one: one.tier("archived"), lambda one: one.tier("dropped")),
        (lambda one: one.place(1), lambda one: one.place(2)),
        (lambda one: one.fan_out(2), lambda one: one.fan_out(3)),
        (lambda one: one.deliver("pending"), lambda one: one.deliver("delivered")),
        (lambda one: one.deliver("dead_lettered"), lambda one: one.deliver("cancelled")),
        (lambda one: one.end_again("23 hours"), lambda one: one.end_again("25 hours")),
    ],
    ids=["live", "archived", "not forwarded", "fanned out", "pending", "dead", "young"],
)
def test_an_ended_version_is_deleted_after_its_last_reader(
    world: World, tmp_path: Path, keep: Callable[[Ended], None], free: Callable[[Ended], None]
) -> None:
    """Versions were never deleted: their number grew with every change."""
    one = Ended(world)
    keep(one)
    purge(world, tmp_path)
    assert versions(world, one.registration) == 1
    free(one)
    purge(world, tmp_path)
    assert versions(world, one.registration) == 0


def test_a_version_that_never_applied_is_deleted_and_one_with_a_readable_event_is_not(
    world: World, tmp_path: Path
) -> None:
    gone, stays = world.stream(), world.stream()
    [endpoint] = world.endpoints()
    [never] = world.register(stays, [endpoint])
    world.change(never, stays, None)
    [before], [both], [lives] = (world.register([gone, stays], [endpoint]) for _ in range(3))
    world.emit(gone, "a", "a")
    end(world, before, [gone, stays])
    world.emit(stays, "a")
    end(world, both, [gone, stays])
    drop(world, gone)
    place(world, gone, 2)
    place(world, stays, 1)
    age(world)
    purge(world, tmp_path)
    assert versions(world, never, before) == 0, "no event of theirs can be read"
    assert versions(world, both, lives) == 2
    drop(world, stays)
    purge(world, tmp_path)
    assert versions(world, both, lives) == 1
    assert world.sql("SELECT count(*) FROM suspensions")[0][0] >= 2, "they keep their barriers"
    [[orphans]] = world.sql(
        "SELECT count(*) FROM barriers b WHERE NOT EXISTS (SELECT FROM registration_versions"
        " WHERE b.id IN (from_barrier, until_barrier)) AND NOT EXISTS (SELECT FROM suspensions"
        " WHERE b.id IN (from_barrier, until_barrier))"
    )
    assert orphans == 0


def test_a_run_ends_with_its_time_and_the_next_one_continues(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream_id, endpoints = world.stream(), world.endpoints(5)
    registrations = world.register(stream_id, endpoints)
    for registration in registrations:
        world.change(registration, stream_id, None)
    age(world)
    monkeypatch.setattr(limits, "VERSIONS_PURGED_AT_ONCE", 2)
    monkeypatch.setattr(limits, "VERSIONS_PURGE_S_MAX", 0.0)
    walking, left, barriers = VersionPurge(ManualClock()), [], 0
    while versions(world, *registrations):
        barriers += walking.run(world.url, tmp_path).barriers
        left.append(versions(world, *registrations))
    assert left[-1] == 0
    steps = [a - b for a, b in zip([5, *left], left, strict=False)]
    assert max(steps) == 2, "a piece of two at a time"
    assert barriers > 0, "barriers have their turn as well"


def test_a_match_index_with_an_ended_version_is_never_wrong(
    world: World,
    interests: StreamMatchers,
    connection: psycopg.Connection[Any],
    tmp_path: Path,
) -> None:
    """A version in an index is retained until the index has been rebuilt. An index in the folder of
    another machine is unknown, and is not used afterwards.
    """
    stream_id = world.stream(matching="index")
    [endpoint] = world.endpoints()
    gone, stays = world.register(stream_id, [endpoint] * 2)
    place(world, stream_id, 0)
    elsewhere = tmp_path / "elsewhere"
    for data in (tmp_path, elsewhere):
        build_stream(connection, data, stream_id)
    world.emit(stream_id, "a")
    world.change(gone, stream_id, None)
    drop(world, stream_id)
    world.sql("UPDATE forwarding SET sequence = 1 WHERE stream_id = %s", stream_id)
    age(world)
    purge(world, tmp_path)
    assert versions(world, gone) == 1, "the index would go on to match it"
    build_stream(connection, tmp_path, stream_id)
    purge(world, tmp_path)
    assert versions(world, gone, stays) == 1
    assert verify_stream(connection, tmp_path, stream_id) == []
    assert state_of(connection, tmp_path, stream_id).epoch == 2
    assert "purged" in state_of(connection, elsewhere, stream_id).why
    assert "were deleted since" in verify_stream(connection, elsewhere, stream_id)[0]


async def test_an_index_from_before_a_purge_loads_correctly(
    world: World, interests: StreamMatchers, connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    stream_id = world.stream(matching="index")
    [endpoint] = world.endpoints()
    gone, stays = world.register(stream_id, [endpoint] * 2)
    place(world, stream_id, 0)
    build_stream(connection, tmp_path, stream_id)  # the folder of `interests`
    world.change(gone, stream_id, None)
    age(world)
    purge(world, tmp_path / "of another machine")
    assert versions(world, gone) == 0
    lease = Lease(stream_id, 1)
    await interests.open(lease, 0)
    found = await interests.current(lease)
    assert found.match(EVENT, 1).endpoints == {endpoint: [stays]}


async def test_a_process_that_learns_of_an_end_after_the_purge_reloads_everything(
    world: World, interests: StreamMatchers, tmp_path: Path
) -> None:
    """A process that was stopped for a day continued to match versions that had ended meanwhile."""
    stream_id = world.stream()
    [endpoint] = world.endpoints()
    gone, changed, stays = world.register(stream_id, [endpoint] * 3)
    place(world, stream_id, 0)
    lease = Lease(stream_id, 1)
    await interests.open(lease, 0)
    found = await interests.current(lease)
    assert found.match(EVENT, 1).endpoints == {endpoint: [gone, changed, stays]}
    world.change(gone, stream_id, None)
    world.change(changed, stream_id, "another type")
    age(world)
    purge(world, tmp_path)
    assert versions(world, gone, changed, stays) == 2
    found = await interests.current(lease)
    assert found.match(EVENT, 1).endpoints == {endpoint: [stays]}


def test_the_schedule_has_a_task_for_it(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Ended(world)
    monkeypatch.setenv("DATABASE_URL", world.url)
    monkeypatch.delenv("DATABASE_DIRECT_URL", raising=False)
    monkeypatch.setenv("EVENTHUB_DATA", str(tmp_path))
    app.tasks[TIMETABLE["purge-versions"]["task"]].apply()
    assert versions(world, one.registration) == 0
    VersionPurge(SystemClock()).run("postgresql://127.0.0.1:1/none", tmp_path)
