"""The memory of all pattern groups of a forwarder is bounded; what it discards stays discarded."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from delivery.forward.process import ForwarderSettings, forward
from eventhub.base import limits
from tests.integration.delivery.test_pattern_groups import typed
from tests.integration.forward_world import eventually
from tests.integration.patterns_world import PatternWorld, patterns_database

world = pytest.fixture(patterns_database)
USERS = 300


@contextmanager
def forwarding(world: PatternWorld, data: Path) -> Iterator[None]:
    """Run a forwarder in this process."""
    loops: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []
    began = threading.Event()

    async def run() -> None:
        stop = asyncio.Event()
        loops.append((asyncio.get_running_loop(), stop))
        began.set()
        await forward(ForwarderSettings(world.url, world.url, None, data, ""), stop=stop)

    thread = threading.Thread(target=asyncio.run, args=(run(),))
    thread.start()
    began.wait()
    try:
        yield
    finally:
        [(loop, stop)] = loops
        loop.call_soon_threadsafe(stop.set)
        thread.join()


def test_a_forwarder_discards_partial_matches_beyond_its_memory(
    world: PatternWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each group was within its own limit, and there was none for all of them."""
    monkeypatch.setattr(limits, "PATTERN_PROCESS_BYTES_MAX", 100_000)
    stream, out = world.stream(), world.stream()
    group = world.pattern_group([stream], out)
    [pattern] = world.patterns(group, ["{a: A}; {b: B} per $u"])
    with forwarding(world, tmp_path):
        for number in range(USERS):
            world.emit_all(stream, [typed("A", u=number)])
        eventually(lambda: world.consumed(group)[1] == [USERS], "consumed")
    [[dropped]] = world.sql(
        "SELECT (dropped->>'process_bytes_max')::int FROM pattern_statuses WHERE pattern_id = %s",
        pattern,
    )
    assert 0 < dropped < USERS
    reports = world.system_events("pattern.dropped")
    assert {(one["pattern"], one["reason"]) for one in reports} == {(pattern, "process_bytes_max")}
    with forwarding(world, tmp_path):  # the restored state is that which was left
        world.emit_all(stream, [typed("B", u=number) for number in range(USERS)])
        eventually(lambda: world.consumed(group)[1] == [2 * USERS], "consumed again")
    bound = [one["a"] for _, one in world.matches(out)]
    first = USERS + 1 - len(bound)
    assert bound == [[number] for number in range(first, USERS + 1)]  # the oldest ones went
    assert dropped < first <= 2 * dropped  # a count is reported again when it has doubled
