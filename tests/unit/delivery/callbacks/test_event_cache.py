"""The cache of bodies: a worker under steady load reaches a steady size."""

import tracemalloc

import pytest

from delivery.callbacks.body import EventCache, EventKey, NativeBody
from eventhub.base.clock import ManualClock

UNUSED_S = 30.0
MIB = 1024 * 1024


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def key_of(sequence: int) -> EventKey:
    return 1 + sequence // 500, sequence, "native", None


def body_of(sequence: int) -> NativeBody:
    return NativeBody(b"%010d" % sequence, b"%010d" % sequence)


def test_an_unused_body_leaves_the_cache(clock: ManualClock) -> None:
    """Each event has one endpoint here, so no body is requested twice. A worker kept 32 MiB of
    them, and grew by some MiB a minute until then.
    """
    cache = EventCache(32 * MIB, UNUSED_S, clock)
    for sequence in range(4_000):
        cache.put(key_of(sequence), body_of(sequence))
        clock.advance_s(0.1)
    assert len(cache) <= 10 * UNUSED_S + 1
    assert cache.get_all([key_of(3_999)]) == [body_of(3_999)]


def test_a_used_body_stays(clock: ManualClock) -> None:
    cache = EventCache(32 * MIB, UNUSED_S, clock)
    cache.put(key_of(0), body_of(0))
    for sequence in range(1, 1_000):
        clock.advance_s(0.1)
        cache.put(key_of(sequence), body_of(sequence))
        assert cache.get_all([key_of(0)]) == [body_of(0)]


@pytest.mark.parametrize("again", [False, True])
def test_the_cache_takes_no_more_memory_than_its_bound(clock: ManualClock, *, again: bool) -> None:
    """Small bodies are mostly objects: 20 bytes took 420, and the cache twenty times its bound."""
    bound = MIB // 4
    tracemalloc.start()
    try:
        cache = EventCache(bound, UNUSED_S, clock)
        for sequence in range(6_000):
            cache.put(key_of(sequence), body_of(sequence))
            if again:
                cache.put(key_of(sequence), body_of(sequence))
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert bound / 2 < taken < bound * 1.1
