"""Builds of streams' match indexes: from the previous epoch, verified, and when they are due."""

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from eventhub.base import limits
from registrations.match_index.epochs.build import build_stream
from registrations.match_index.epochs.epoch import open_epoch
from registrations.match_index.epochs.errors import IndexNotUsed
from registrations.match_index.epochs.folder import index_root
from registrations.match_index.epochs.state import IndexState, due_streams, state_of
from registrations.match_index.epochs.verify import verify_stream
from registrations.match_index.format.builder import EpochPlan, build
from registrations.match_index.format.manifest import folder_of, read_manifest
from tests.integration.forward_world import World, place, world_database

world = pytest.fixture(scope="module")(world_database)


@pytest.fixture
def connection(world: World) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(world.url, autocommit=True) as connection:
        yield connection


def files(root: Path, epoch: int) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (root / folder_of(epoch)).glob("*.idx")}


def change_some(world: World, stream_id: int, endpoint: int, seed: int) -> None:
    chance = random.Random(seed)
    live = world.register(stream_id, [endpoint] * 20, "a")
    live += world.register(stream_id, [endpoint] * 20)
    for registration in chance.sample(live, 15):
        world.change(registration, stream_id, chance.choice(("a", "b", None)))
        if chance.random() < 0.3:
            world.emit(stream_id, "a")


def test_an_index_built_from_the_previous_epoch_has_the_same_bytes(
    world: World, connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    stream_id, elsewhere = world.stream(), world.stream()
    [endpoint] = world.endpoints()
    one, other = tmp_path / "one", tmp_path / "other"
    for seed in range(4):
        change_some(world, stream_id, endpoint, seed)
        change_some(world, elsewhere, endpoint, seed)
        place(world, stream_id, seed)
        stages: list[str] = []
        first = build_stream(
            connection, one, stream_id, progress=lambda at, said=stages: said.append(at.stage)
        )
        second = build_stream(connection, other, stream_id, full=True)
        assert (first.ids, first.parts) == (second.ids, second.parts)
        assert files(index_root(one, stream_id), first.epoch) == files(
            index_root(other, stream_id), second.epoch
        )
        assert stages[-4:] == ["written", "sealed", "published", "cleaned"]
        assert verify_stream(connection, one, stream_id) == []
    assert first.ids > 100
    assert first.facts["after"] == 3
    with pytest.raises(IndexNotUsed):
        build_stream(connection, one, 1)
    with pytest.raises(IndexNotUsed):
        build_stream(connection, one, world.stream(durability="transient"))


def test_the_size_of_a_shard_is_bounded(
    world: World,
    connection: psycopg.Connection[Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "INDEX_SHARD_ENTRIES_MAX", 20)
    stream_id = world.stream()
    [endpoint] = world.endpoints()

    def sizes() -> list[int]:
        build_stream(connection, tmp_path, stream_id)
        assert verify_stream(connection, tmp_path, stream_id) == []
        return [len(columns.ids) for columns in open_epoch(root).columns]

    root = index_root(tmp_path, stream_id)
    registrations = world.register(stream_id, [endpoint] * 10, "a")
    assert sizes() == [10]
    registrations += world.register(stream_id, [endpoint] * 45, "b")
    assert sorted(sizes()) == [15, 20, 20]
    for registration in registrations:
        world.change(registration, stream_id, None)
    place(world, stream_id, 1)
    wrong = world.register(stream_id, [endpoint] * 30, "c")
    assert sorted(sizes()) == [10, 20], "what remains of several is merged"
    world.sql(
        "UPDATE registration_versions SET filter = %s WHERE registration_id = ANY (%s)",
        *('{"type": "z"}', [wrong[0], wrong[-1]]),
    )
    said = verify_stream(connection, tmp_path, stream_id)
    assert sorted(int(line.split()[1]) for line in said) == [wrong[0], wrong[-1]]


def test_a_verification_names_the_faulty_registrations(
    world: World, connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    stream_id = world.stream()
    [endpoint] = world.endpoints()
    one, two, three = world.register(stream_id, [endpoint] * 3, "a")
    assert verify_stream(connection, tmp_path, stream_id) != []
    build_stream(connection, tmp_path, stream_id)
    world.change(two, stream_id, "b")
    world.register(stream_id, [endpoint])
    assert verify_stream(connection, tmp_path, stream_id) == [], "the tables changed since"
    alter = "UPDATE registration_versions SET filter = %s, endpoint_id = %s"
    for filter, url, registration in (
        ('{"type": "z"}', endpoint, one),
        ('{"type": "a"}', None, three),
    ):
        world.sql(f"{alter} WHERE registration_id = %s", filter, url, registration)
        [line] = verify_stream(connection, tmp_path, stream_id)
        assert line.startswith(f"Registration {registration} ")
        world.sql(f"{alter} WHERE registration_id = %s", '{"type": "a"}', endpoint, registration)
    root = index_root(tmp_path, stream_id)
    build(root, [], _plan_of(root))
    found = verify_stream(connection, tmp_path, stream_id)
    assert {line.split()[1] for line in found} == {str(id) for id in (one, two, three)}


def _plan_of(root: Path) -> EpochPlan:
    manifest = read_manifest(root)
    return EpochPlan(manifest.built_through_sequence, manifest.facts)


def test_an_index_is_due_when_enough_has_changed(
    world: World,
    connection: psycopg.Connection[Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "INDEX_AUTO_MIN", 10)
    monkeypatch.setattr(limits, "INDEX_DELTA_MIN", 4)
    stream_id = world.stream()
    [endpoint] = world.endpoints()

    def state() -> IndexState:
        found = state_of(connection, tmp_path, stream_id)
        assert found.due == (stream_id in due_streams(connection, tmp_path))
        return found

    world.register(stream_id, [endpoint] * 9)
    place(world, stream_id, 0)
    assert (state().epoch, state().changed_since, state().due) == (None, 9, False)
    [registration] = world.register(stream_id, [endpoint])
    assert (state().changed_since, state().due) == (10, True)
    build_stream(connection, tmp_path, stream_id)
    assert state()[:3] == (1, 10, 10)
    assert (state().changed_since, state().due) == (0, False)
    world.change(registration, stream_id, "b")  # one ends, one starts
    world.register(stream_id, [endpoint])
    assert (state().changed_since, state().due) == (3, False)
    world.register(stream_id, [endpoint])
    assert state().due
    assert (state().built_at or 0) > 1_700_000_000_000_000
    [registration] = world.register(stream_id, [endpoint] * 3)[:1]
    world.change(registration, stream_id, None)
    assert state().changed_since == 7, "one that started and ended since counts once"
    bounded = state_of(connection, tmp_path, stream_id, exact=False)
    assert (bounded.changed_since, bounded.due) == (4, True)
    assert "4 or more" in bounded.why
    world.sql("UPDATE streams SET matching = 'compile' WHERE id = %s", stream_id)
    assert not state().due


def test_the_reason_of_an_unreadable_index_has_no_paths_of_the_server(
    world: World, connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    stream_id = world.stream()
    world.register(stream_id, world.endpoints(3), "a")
    manifest = build_stream(connection, tmp_path, stream_id)
    folder = index_root(tmp_path, stream_id) / manifest.folder

    def spoilt(said: str) -> None:
        state = state_of(connection, tmp_path, stream_id)
        assert (state.epoch, state.changed_since) == (None, 3)
        assert state.why.startswith(said)
        assert "/" not in state.why

    (folder / "damaged").touch()
    spoilt("The index is damaged.")
    shutil.rmtree(folder)
    spoilt("The index is damaged.")
    shutil.rmtree(index_root(tmp_path, stream_id))
    (index_root(tmp_path, stream_id) / "manifest.json").mkdir(parents=True)
    spoilt("The index cannot be read.")


# --- with processes ---
