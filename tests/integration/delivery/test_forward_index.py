"""A forwarder with a match index: no change before, during or after its build is missed or doubled,
and an index that may not be used is not used.
"""

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from prometheus_client import REGISTRY

from delivery.forward.leases import Lease
from delivery.forward.stream_matcher import CallbackMatcher
from delivery.forward.stream_matchers import StreamMatchers
from eventhub.event.envelope import Event
from eventhub.eventlog.continuity import roll_all
from registrations.match_index.epochs.build import build_stream
from registrations.match_index.epochs.folder import index_root
from registrations.match_index.epochs.state import state_of
from registrations.match_index.format.manifest import IndexManifest, write_manifest
from registrations.match_index.format.shard import Shard
from tests.integration.delivery.test_forward_exact import (
    CUT,
    change_at_random,
    emit_at_random,
    expected_deliveries,
)
from tests.integration.forward_world import (
    Start,
    World,
    eventually,
    forwarders,
    interests_alone,
    place,
    world_database,
)

world = pytest.fixture(scope="module")(world_database)
interests = pytest.fixture(interests_alone)
start = pytest.fixture(forwarders)
EVENT = Event("d", "a", {})


@pytest.fixture
def connection(world: World) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(world.url, autocommit=True) as connection:
        yield connection


def matched(interest: CallbackMatcher, sequence: int, endpoint: int) -> list[int]:
    return interest.match(EVENT, sequence).endpoints.get(endpoint, [])


def refused(reason: str) -> float:
    return REGISTRY.get_sample_value("eventhub_index_refused_total", {"reason": reason}) or 0.0


async def opened(
    interests: StreamMatchers, stream_id: int, passed: int = 0, epoch: int = 1
) -> CallbackMatcher:
    """Return the stream's interest, under a new lease."""
    lease = Lease(stream_id, epoch)
    await interests.open(lease, passed)
    return await interests.current(lease)


# --- changes around a build ---


async def test_only_changes_since_the_build_are_loaded_also_of_an_open_transaction(
    world: World, interests: StreamMatchers, connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    """Its number and its barrier are older than those in the index, and it is committed later."""
    stream_id, group = world.stream(), world.group()
    [endpoint] = world.endpoints()
    gone, ends, _ = made = world.register(stream_id, [endpoint] * 3)
    asleep = world.register(stream_id, [endpoint], group=group)
    world.emit(stream_id, "a")
    world.change(gone, stream_id, None)
    place(world, stream_id, 1)
    late = world.begin()
    made += world.register(stream_id, [endpoint])
    manifest = build_stream(connection, tmp_path, stream_id)
    assert (manifest.ids, manifest.facts["after"]) == (4, 1), "what has ended and passed is out"
    made += [late.register(stream_id, endpoint)]
    world.change(ends, stream_id, None)
    world.suspend(group, [stream_id])

    interest = await opened(interests, stream_id, 1)
    assert interest.sizes == (4, 1, 1)
    assert matched(interest, 2, endpoint) == [id for id in sorted(made) if id not in (gone, ends)]
    world.suspend(group, [stream_id], resume=True)
    world.emit(stream_id, "a")
    await interests.current(Lease(stream_id, 1))
    assert matched(interest, 2, endpoint) == [
        id for id in sorted([*made, *asleep]) if id not in (gone, ends)
    ]


async def test_a_newer_index_includes_changes_made_during_its_build(
    world: World, interests: StreamMatchers, connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    """Ends that the stream has passed are forgotten, but not by the new index's snapshot."""
    stream_id = world.stream()
    [endpoint] = world.endpoints()
    first = world.register(stream_id, [endpoint] * 5)
    interest = await opened(interests, stream_id)
    assert interest.sizes == (0, 5, 0)
    build_stream(connection, tmp_path, stream_id)
    world.change(first[0], stream_id, None)
    world.emit(stream_id, "a")
    await interests.current(Lease(stream_id, 1))
    interest.advance(1)
    assert interest.sizes == (0, 4, 0)
    new = world.register(stream_id, [endpoint])
    await interests.current(Lease(stream_id, 1))
    await interests.take_indexes()
    assert interest.sizes == (5, 1, 1)
    assert matched(interest, 2, endpoint) == first[1:] + new
    place(world, stream_id, 1)
    build_stream(connection, tmp_path, stream_id)
    await interests.take_indexes()
    assert interest.sizes == (5, 0, 0)
    assert matched(interest, 2, endpoint) == first[1:] + new
    assert await opened(interests, stream_id, 1) is interest
    # an older one, put back from a backup of the folder
    epochs = sorted(index_root(tmp_path, stream_id).glob("epoch-*/manifest.json"))
    shutil.copy(epochs[0], index_root(tmp_path, stream_id) / "manifest.json")
    before = refused("older")
    await interests.take_indexes()
    assert refused("older") == before + 1
    assert matched(interest, 2, endpoint) == first[1:] + new


async def test_another_strategy_loads_memory_and_an_indexed_one_reopens_the_index(
    world: World, interests: StreamMatchers, connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    stream_id = world.stream()
    [endpoint] = world.endpoints()
    made = world.register(stream_id, [endpoint] * 3)
    build_stream(connection, tmp_path, stream_id)
    for strategy, sizes in (("index", (3, 0, 0)), ("compile", (0, 3, 0)), ("auto", (3, 0, 0))):
        world.sql("UPDATE streams SET matching = %s WHERE id = %s", strategy, stream_id)
        await opened(interests, stream_id)
        await interests._rebuild()
        await interests.take_indexes()
        interest = await interests.current(Lease(stream_id, 1))
        assert (interest.matching.strategy, interest.sizes) == (strategy, sizes)
        assert matched(interest, 1, endpoint) == made


# --- unusable indexes ---


def mend(manifest: IndexManifest, root: Path, **facts: Any) -> None:
    """Write the same epoch with other facts, properly sealed."""
    changed = manifest._replace(facts={**manifest.facts, **facts})
    write_manifest(root / manifest.folder, changed, durable=False)
    write_manifest(root, changed, durable=False)


async def test_an_unusable_index_is_refused_and_the_tables_are_read(
    world: World, interests: StreamMatchers, connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    stream_id = world.stream()
    [endpoint] = world.endpoints()
    made = world.register(stream_id, [endpoint] * 3)
    root = index_root(tmp_path, stream_id)
    leases = iter(range(1, 100))

    async def refuses(reason: str) -> None:
        before, lease = refused(reason), next(leases)
        interest = await opened(interests, stream_id, epoch=lease)
        assert interest.sizes == (0, 3, 0)
        assert refused(reason) == before + 1
        assert matched(interest, 1, endpoint) == made
        interests.close(Lease(stream_id, lease))

    manifest = build_stream(connection, tmp_path, stream_id)
    assert (await opened(interests, stream_id, epoch=next(leases))).sizes == (3, 0, 0)
    mend(manifest, root, stream=stream_id + 1)
    await refuses("stream")
    mend(manifest, root, after=1)
    await refuses("after")
    mend(manifest._replace(built_through_sequence=10**9), root)
    await refuses("future")
    mend(manifest, root, form=99)
    await refuses("damaged")
    for wrong in ({"after": "0"}, {"xmin": None}, {"refused": ["x"]}, {"more": 1}):
        mend(manifest, root, **wrong)
        await refuses("damaged")
    mend(manifest._replace(entries=-1), root)
    await refuses("damaged")
    for text in ("{}", "[" * 200_000):
        (root / "manifest.json").write_text(text)
        await refuses("damaged")
    mend(manifest, root)
    [part] = (root / manifest.folder).glob("*.idx")
    bytes = part.read_bytes()
    part.write_bytes(bytes[:-64])
    await refuses("damaged")
    part.write_bytes(bytes)
    spoil(part, "extra:endpoint")
    await refuses("damaged")
    assert state_of(connection, tmp_path, stream_id).epoch is None, "nobody opens it again"
    part.write_bytes(bytes)
    (part.parent / "damaged").unlink()
    roll_all(connection)  # `manage.py restored`
    await refuses("history")
    build_stream(connection, tmp_path, stream_id)
    assert (await opened(interests, stream_id, epoch=next(leases))).sizes == (3, 0, 0)


@pytest.mark.parametrize(
    "section", ["dense_at", "by_id"]
)  # found damaged by a match, and by a change
async def test_an_index_damaged_in_use_stops_nothing(
    world: World, tmp_path: Path, start: Start, section: str
) -> None:
    stream_id = world.stream()
    [endpoint] = world.endpoints()
    made = world.register(stream_id, [endpoint] * 3)
    place(world, stream_id, 0)
    with psycopg.connect(world.url, autocommit=True) as connection:
        build_stream(connection, tmp_path, stream_id)
        root = index_root(tmp_path, stream_id)
        [part] = root.glob("epoch-*/*.idx")
        running = start()
        eventually(lambda: "how=opened" in running.log(), "the index is opened")
        spoil(part, section)
        world.change(made[0], stream_id, None)
        world.emit(stream_id, "a")
        eventually(lambda: world.deliveries(stream_id) == [(1, endpoint, made[1:])], "the delivery")
        assert "index_refused" in running.log()
        assert "reason=damaged" in running.log()
        assert state_of(connection, tmp_path, stream_id).epoch is None
        build_stream(connection, tmp_path, stream_id)
        eventually(lambda: "how=swapped" in running.log(), "the next one is taken")
        world.emit(stream_id, "a")
        expected = [(1, endpoint, made[1:]), (2, endpoint, made[1:])]
        eventually(lambda: world.deliveries(stream_id) == expected, "the delivery")


def spoil(part: Path, section: str) -> None:
    place = Shard(part).sections[section]
    with part.open("r+b") as file:
        file.seek(place.offset)
        file.write(b"\x7f" * place.length)


def test_indexes_come_while_registrations_change_events_flow_and_forwarders_die(
    world: World, start: Start, tmp_path: Path
) -> None:
    stream_id = world.stream(segment_events_max=100)
    first = start()
    done = threading.Event()
    built: list[int] = []

    def build_on() -> None:
        with psycopg.connect(world.url, autocommit=True) as connection:
            while not done.is_set():
                built.append(build_stream(connection, tmp_path, stream_id).epoch)
                done.wait(0.3)

    threads = [
        threading.Thread(target=change_at_random, args=(world, stream_id, done)),
        threading.Thread(target=build_on),
    ]
    for thread in threads:
        thread.start()
    try:
        emit_at_random(world, stream_id, 150)
        eventually(lambda: "how=swapped" in first.log(), "an index is taken")
        first.kill()
        second = start()
        emit_at_random(world, stream_id, 100)
        world.sql(CUT)
        emit_at_random(world, stream_id, 100)
    finally:
        done.set()
        for thread in threads:
            thread.join()
    eventually(lambda: world.passed(stream_id) == 350, "all is matched")
    expected = expected_deliveries(world, stream_id)
    assert len({row[0] for row in expected}) > 150
    assert world.deliveries(stream_id) == expected
    assert len(built) > 3
    assert "how=opened" in second.log()
