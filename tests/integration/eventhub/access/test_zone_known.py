"""A forwarder's caches of a zone (the groups of clients and the declared types) are exact for a
batch that was read, however late the notifications of changes arrive.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg
import pytest

from delivery.forward.zone import ZoneCaches, ZoneView
from eventhub.access.client_groups import Groups
from eventhub.event.envelope import Event
from eventhub.eventlog.append import append_in
from eventhub.eventlog.log import Log
from eventhub.eventlog.system import Announcement, drafts_of
from eventhub.types.registry import TypeRegistry
from tests.acceptance.wire import until
from tests.integration.forward_world import World, world_database

world = pytest.fixture(scope="module")(world_database)
_numbers = itertools.count()
FOR_OPS = Event("d", "t", {}, audience=("ops",))


@asynccontextmanager
async def process(world: World, *, follows: bool) -> AsyncIterator[ZoneCaches]:
    """Yield the caches of a process that follows `system`, or that cannot at present."""
    async with Log.open(database_url=world.url) as log:
        found = ZoneCaches(TypeRegistry(log), Groups(log))
        tasks = []
        if follows:
            tasks = [asyncio.create_task(one.run()) for one in (found.types, found.groups)]
            await until(found.types.fresh)
        yield found
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.fixture(params=[True, False], ids=["followed", "not followed"])
async def zones(world: World, request: pytest.FixtureRequest) -> AsyncIterator[ZoneCaches]:
    async with process(world, follows=request.param) as found:
        yield found


def changed(world: World, type: str, statement: str, *values: object) -> int:
    """Change and announce something without notifying anyone; return its sequence."""
    with psycopg.connect(world.url) as connection, connection.transaction():
        connection.execute(statement.encode(), values)
        [place] = append_in(connection, drafts_of("forward", [Announcement(type, {})]))
        return place.sequence


def put_into(world: World, groups: str) -> int:
    statement = "UPDATE clients SET groups = %s WHERE id = %s"
    return changed(world, "client.changed", statement, groups, world.client)


def declare(world: World, type: str, version: int, parent: str | None = None) -> int:
    statement = (
        "INSERT INTO event_types (zone_id, domain, type, version, parent, evolution, schema)"
        " VALUES (%s, 'd', %s, %s, %s, 'none', '{}')"
    )
    return changed(world, "type.declared", statement, world.zone, type, version, parent)


async def test_a_batch_is_matched_by_the_groups_at_its_time(
    world: World, zones: ZoneCaches
) -> None:
    zone = ZoneView(zones, world.zone)
    await zone.learn([Event("d", "t", {})], through=0)
    assert zone.groups_of("c") == frozenset()
    for groups in (["ops"], [], ["dev", "ops"], ["night"]) * 3:
        sequence = put_into(world, str(groups).replace("'", '"'))
        await zone.learn([FOR_OPS], through=sequence)
        assert zone.groups_of("c") == frozenset(groups)
        assert zone.groups_of("nobody") == frozenset()


async def test_a_type_counts_from_its_first_event_on(world: World, zones: ZoneCaches) -> None:
    name = f"Alarm-{next(_numbers)}"
    zone = ZoneView(zones, world.zone)
    sub, subsub = (Event("d", f"{name}.{at}", {}, version="1") for at in ("sub", "subsub"))
    sequence = declare(world, name, 1)
    made_up = Event("d", f"{name}.made-up", {}, version="7")
    await zone.hierarchy.learn([sub, made_up], through=sequence)
    assert zone.hierarchy(sub) == (sub.type,), "a version that somebody made up"
    sequence = declare(world, sub.type, 1, name)
    await zone.hierarchy.learn([sub], through=sequence)
    assert zone.hierarchy(sub) == (sub.type, name)
    assert zone.hierarchy(sub._replace(version="")) == (sub.type,), "from before it was declared"
    assert zone.hierarchy(sub._replace(version="2")) == (sub.type,)
    assert zone.hierarchy(sub._replace(version="one")) == (sub.type,)
    assert zone.hierarchy(sub._replace(domain="other")) == (sub.type,)
    declare(world, sub.type, 2, name)
    declare(world, subsub.type, 1, sub.type)
    second = sub._replace(version="2")
    await zone.hierarchy.learn([second, subsub])  # without knowing the head of `system`
    assert zone.hierarchy(second) == zone.hierarchy(sub) == (sub.type, name)
    assert zone.hierarchy(subsub) == (subsub.type, sub.type, name)
    system = ZoneView(zones, None)
    await system.learn([second, FOR_OPS], through=sequence)
    assert system.hierarchy(second) == (second.type,)
    assert system.groups_of("c") == frozenset()


async def test_unknown_versions_do_not_cause_reads(world: World) -> None:
    """Otherwise any producer could cause a read of the definitions for each event."""
    made_up = [Event("d", "MadeUp", {}, version="7")]
    async with process(world, follows=True) as zones:
        sequence = declare(world, f"Real-{next(_numbers)}", 1)
        await until(lambda: zones.types._system.has_reached(sequence) and zones.types.fresh())
        found = await zones.types.zone_of_events(world.zone, made_up, through=sequence)
        for through in (sequence, None):
            assert await zones.types.zone_of_events(world.zone, made_up, through=through) is found
