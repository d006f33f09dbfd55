"""The ring: accepts only the next sequence, is bounded by count and bytes, and is indexed by
sequence.
"""

import asyncio
import random
import time

import pytest

from eventhub.base import limits
from eventhub.eventlog.ring import Ring, memory_bytes
from eventhub.eventlog.stored import Cursor, StoredEvent

SIZE = limits.RING_EVENTS_MAX
NO_LIMIT = 1 << 40
THREE = 3 * memory_bytes(StoredEvent("s", 1, 1, 0, b"x" * 30))  # events of 30 bytes


def rows(first: int, last: int, *, size: int = 1) -> list[StoredEvent]:
    return [StoredEvent("s", n, 1, 0, b"x" * size) for n in range(first, last + 1)]


def held(ring: Ring, after: int, count: int = SIZE) -> list[int] | None:
    found = ring.after(after, count)
    return None if found is None else [stored.sequence for stored in found]


def test_next_rows_are_added_and_known_ones_ignored() -> None:
    ring = Ring(Cursor("s", 4), bytes_max=NO_LIMIT)
    first = rows(5, 7)
    assert ring.push(first)
    assert ring.push([*rows(3, 8), *rows(6, 9)])
    assert held(ring, 4) == [5, 6, 7, 8, 9]
    assert ring.after(4, 1) == first[:1], "a known row took the place of the one that was there"


def test_a_hole_is_refused_and_rows_before_it_are_added() -> None:
    ring = Ring(Cursor("s", 0), bytes_max=NO_LIMIT)
    assert not ring.push([*rows(1, 2), *rows(4, 5)])
    assert (held(ring, 0), ring.next) == ([1, 2], 3)
    assert not ring.push(rows(4, 4))
    assert ring.push(rows(3, 5))
    assert held(ring, 2) == [3, 4, 5]


def test_the_head_of_system_is_known_for_events_that_were_read_with_it() -> None:
    ring = Ring(Cursor("s", 0), bytes_max=NO_LIMIT)
    ring.push(rows(1, 3), system=70)
    ring.push(rows(4, 4))  # appended by this process
    assert [ring.system_at(sequence) for sequence in (1, 3, 4)] == [70, 70, None]
    ring.push(rows(4, 5), system=71)
    assert [ring.system_at(sequence) for sequence in (3, 5)] == [71, 71]
    ring.distrust()
    assert ring.system_at(3) is None
    ring.push(rows(6, 6), system=72)
    ring.skip_to(Cursor("s", 9))
    assert ring.system_at(6) is None


def test_after_gives_at_most_so_many_and_nothing_beyond_the_head() -> None:
    ring = Ring(Cursor("s", 0), bytes_max=NO_LIMIT)
    ring.push(rows(1, 10))
    assert held(ring, 3, 2) == [4, 5]
    assert held(ring, 10) == []
    assert held(ring, 50) == []


def test_the_oldest_events_are_evicted_by_count_and_their_readers_read_the_log() -> None:
    ring = Ring(Cursor("s", 0), bytes_max=NO_LIMIT)
    ring.push(rows(1, SIZE + 3))
    assert (ring.first, ring.next) == (4, SIZE + 4)
    assert held(ring, 2) is None
    assert held(ring, 3) == list(range(4, SIZE + 4))


def test_the_oldest_events_are_evicted_by_bytes_but_the_newest_stays() -> None:
    ring = Ring(Cursor("s", 0), bytes_max=THREE)
    ring.push(rows(1, 4, size=30))
    assert held(ring, 1) == [2, 3, 4]
    ring.push(rows(5, 5, size=500))
    assert (held(ring, 4), held(ring, 3)) == ([5], None)
    ring.push(rows(6, 8, size=30))
    assert held(ring, 5) == [6, 7, 8], "the bytes of what left still count"


def test_the_ring_continues_empty_after_an_unreadable_position() -> None:
    ring = Ring(Cursor("s", 0), bytes_max=THREE)
    ring.push(rows(1, 3, size=30))
    ring.skip_to(Cursor("s", 9))
    assert (held(ring, 3), held(ring, 8), held(ring, 9)) == (None, None, [])
    assert not ring.push(rows(11, 11))
    assert ring.push(rows(4, 12, size=30))
    assert held(ring, 9) == [10, 11, 12]


def test_readers_are_woken_by_new_events_only() -> None:
    ring = Ring(Cursor("s", 0), bytes_max=NO_LIMIT)
    waker = asyncio.Event()
    ring.wakers.add(waker)
    ring.push(rows(1, 1))
    assert waker.is_set()
    waker.clear()
    ring.push(rows(1, 1))
    ring.push(rows(3, 3))
    assert not waker.is_set()
    ring.skip_to(Cursor("s", 4))
    assert waker.is_set()


def test_a_full_ring_is_as_fast_at_its_end_as_at_its_beginning() -> None:
    """A deque sliced by position took time in proportion to the position."""
    ring = Ring(Cursor("s", 0), bytes_max=NO_LIMIT)
    ring.push(rows(1, 3 * SIZE))

    def best_s(after: int) -> float:
        took = []
        for _ in range(7):
            began = time.perf_counter()
            for _ in range(300):
                ring.after(after, 8)
            took.append(time.perf_counter() - began)
        return min(took)

    assert best_s(ring.next - 10) < 5 * best_s(ring.first)


@pytest.mark.parametrize("seed", range(3))
def test_any_order_of_pushes_gives_the_same_numbers(seed: int) -> None:
    chance = random.Random(seed)
    ring, seen = Ring(Cursor("s", 0), bytes_max=NO_LIMIT), 0
    while ring.next <= 500:
        start = chance.randint(max(1, ring.next - 20), ring.next + 5)
        ring.push(rows(start, start + chance.randint(0, 12)))
        found = held(ring, seen)
        assert found == list(range(seen + 1, ring.next))
        seen = ring.next - 1


def test_an_invalidated_ring_neither_accepts_nor_returns_rows_until_skip_to() -> None:
    ring = Ring(Cursor("s", 0), bytes_max=NO_LIMIT)
    ring.push(rows(1, 5))
    assert ring.head == Cursor("s", 5)
    ring.distrust()
    ring.push(rows(6, 7))
    assert (ring.life, held(ring, 3)) == (1, None)
    ring.skip_to(Cursor("other", 2))
    assert (ring.head, held(ring, 2), held(ring, 1)) == (Cursor("other", 2), [], None)
