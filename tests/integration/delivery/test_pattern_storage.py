"""What pattern groups write: not more than the hub has space for, and snapshots in time."""

from functools import partial
from pathlib import Path

import psycopg
import pytest
from prometheus_client import REGISTRY

from eventhub.base import limits
from tests.integration.delivery.test_pattern_groups import typed
from tests.integration.delivery.test_pattern_memory import forwarding
from tests.integration.forward_world import Start, eventually, forwarders
from tests.integration.patterns_world import PatternWorld, patterns_database

world = pytest.fixture(patterns_database)
start = pytest.fixture(forwarders)

NO_SPACE = Path("/proc")  # its file system has no bytes, so none are free


@pytest.mark.parametrize("full", ["quota", "disk"])
def test_outputs_wait_while_emits_are_refused_for_lack_of_space(
    full: str,
    world: PatternWorld,
    start: Start,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Emits were refused so that PostgreSQL could go on, and the outputs of the events before them
    filled the disk until it stopped.
    """
    stream, out = world.stream(), world.stream()
    group = world.pattern_group([stream], out)
    world.patterns(group, ["{a: A}"])
    store = tmp_path / "store"
    store.symlink_to(NO_SPACE if full == "disk" else tmp_path)
    monkeypatch.setenv("EVENTHUB_STORE_DIR", str(store))
    if full == "quota":
        world.sql("UPDATE log_state SET quota_bytes = 1")
    forwarder = start()
    world.emit_all(stream, [typed("A"), typed("A")])
    eventually(lambda: "pattern_group_waits_for_space" in forwarder.log(), "a wait for space")
    assert world.events(out) == []
    world.sql("UPDATE log_state SET quota_bytes = NULL")
    store.unlink()
    store.symlink_to(tmp_path)
    eventually(lambda: world.consumed(group)[1] == [2], "consumed")
    assert [one["a"] for _, one in world.matches(out)] == [[1], [2]]


def test_a_group_that_waits_lags(world: PatternWorld, tmp_path: Path) -> None:
    """Its events were consumed, so it seemed to be up to date."""
    stream = world.stream()
    group = world.pattern_group([stream])
    world.patterns(group, ["{a: A}"])
    world.sql("UPDATE log_state SET quota_bytes = 1")
    world.emit_all(stream, [typed("A")])
    with forwarding(world, tmp_path):
        lag_s = partial(REGISTRY.get_sample_value, "eventhub_pattern_lag_seconds")
        eventually(lambda: (lag_s() or 0) > 1, "lag")
        world.sql("UPDATE log_state SET quota_bytes = NULL")
        eventually(lambda: lag_s() == 0, "no lag")
    assert world.consumed(group)[1] >= [1]


def test_the_time_of_restoring_counts_towards_the_next_snapshot(
    world: PatternWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forwarders that were killed soon after they had restored a group never wrote a snapshot."""
    monkeypatch.setattr(limits, "PATTERN_SNAPSHOT_INTERVAL_S", 60.0)
    stream = world.stream()
    group = world.pattern_group([stream])
    world.patterns(group, ["{a: A}; {b: B}"])
    with forwarding(world, tmp_path):
        for number in (1, 2):  # the first snapshot is due at once
            world.emit_all(stream, [typed("A")])
            eventually(lambda number=number: world.consumed(group)[1] == [number], "consumed")
    assert world.sql("SELECT position FROM pattern_states") < [(2,)]
    monkeypatch.setattr(limits, "PATTERN_SNAPSHOT_INTERVAL_S", 2.0)
    with psycopg.connect(world.url) as slow, forwarding(world, tmp_path):
        slow.execute("LOCK TABLE pattern_journal")
        late = "wait_event_type = 'Lock' AND now() - query_start > '2s'"
        query = f"SELECT pid FROM pg_stat_activity WHERE {late}"
        eventually(lambda: world.sql(query), "two seconds of restoring")
        slow.commit()
        world.emit_all(stream, [typed("A")])
        eventually(lambda: world.consumed(group)[1] == [3], "consumed again")
        assert world.sql("SELECT position FROM pattern_states") == [(3,)]
