"""Blocks of stored events give each session all that it may have to evaluate."""

import asyncio
from random import Random

import pytest

from delivery.sessions import event_blocks
from delivery.sessions.event_blocks import EventBlocks, block_start
from eventhub.base import limits
from eventhub.event.envelope import Event
from eventhub.event.protobuf_codec import encode
from eventhub.eventlog.stored import Cursor, StoredEvent

KINDS = 5
LAST = 1_000


def stored(sequence: int) -> StoredEvent:
    event = Event("shop", "order", {"kind": sequence % KINDS})
    return StoredEvent("s", sequence, 0, 0, encode(event))


LOG = {sequence: stored(sequence) for sequence in range(1, LAST + 1)}


def page(first: int, last: int) -> list[StoredEvent]:
    return [LOG[sequence] for sequence in range(first, last + 1)]


async def selected(blocks: EventBlocks, read: list[StoredEvent], kind: int) -> list[int]:
    found = await blocks.select(read, [(("kind", kind),)])
    return [one.sequence for one in found]


def expected(first: int, last: int, kind: int) -> set[int]:
    """Return the events of the kind, those before them, and the last one."""
    of_kind = [at for at in range(first, last + 1) if at % KINDS == kind]
    return {last, *of_kind, *(at - 1 for at in of_kind if at > first)}


@pytest.mark.parametrize("seed", range(5))
async def test_pages_in_any_order_have_what_may_match_and_the_one_before(seed: int) -> None:
    random, blocks = Random(seed), EventBlocks()
    for _ in range(200):
        first = random.randint(1, LAST)
        last = min(LAST, first + random.choice([0, 3, 100, 600]))
        kind = random.randrange(KINDS)
        found = await selected(blocks, page(first, last), kind)
        assert found == sorted(set(found))
        assert expected(first, last, kind) <= set(found) <= set(range(first, last + 1))
        cursor = Cursor("s", random.randint(0, LAST - 1))
        following = [one.sequence for one in blocks.after(cursor, 300)]
        assert following == list(range(cursor.sequence + 1, cursor.sequence + 1 + len(following)))
    whole = await selected(blocks, page(256, 767), 3)
    assert set(whole) == expected(256, 767, 3), "of whole blocks nothing else is evaluated"
    blocks.clear()


async def test_readers_that_index_a_block_at_once_find_what_may_match(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Indexing takes several slices; meanwhile others add events before those of the block."""
    monkeypatch.setattr(limits, "SESSION_BLOCK_SLICE_S", 0.0)
    blocks = EventBlocks()
    selecting = [asyncio.create_task(selected(blocks, page(300, 400), n)) for n in range(KINDS)]
    for _ in range(20):
        await asyncio.sleep(0)
    blocks.keep(page(256, 299))
    for kind, found in enumerate(await asyncio.gather(*selecting)):
        assert set(found) == expected(300, 400, kind)
    blocks.clear()


async def test_a_page_ends_where_many_events_may_match(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LISTEN_PAGE_EVENTS_MAX", 50)
    blocks = EventBlocks()
    assert set(await selected(blocks, page(300, 900), 3)) == expected(300, 511, 3)
    assert set(await selected(blocks, page(300, 400), 3)) == expected(300, 400, 3)
    blocks.clear()


async def test_a_page_with_a_hole_is_returned_and_not_kept() -> None:
    """So is what a route had not sent when it was suspended."""
    blocks = EventBlocks()
    holes = [LOG[300], LOG[305], LOG[320]]
    assert await blocks.select(holes, [(("kind", 4),)]) == holes
    assert blocks.after(Cursor("s", 299), 10) == []


def test_events_that_would_leave_a_hole_in_a_block_are_not_kept() -> None:
    blocks = EventBlocks()
    for first, last in ((300, 310), (330, 340), (290, 299)):
        blocks.keep(page(first, last))
    assert [one.sequence for one in blocks.after(Cursor("s", 289), 100)] == [*range(290, 311)]
    assert blocks.after(Cursor("s", 288), 100) == []
    assert blocks.after(Cursor("other", 299), 100) == []
    blocks.clear()


def test_memory_is_bounded_and_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    before = EventBlocks.total_bytes
    blocks, others = EventBlocks(), EventBlocks()
    others.keep(page(1, 10))
    monkeypatch.setattr(limits, "SESSION_BLOCKS_BYTES_TOTAL_MAX", before + 300_000)
    blocks.keep(page(1, LAST))
    assert before < EventBlocks.total_bytes <= before + 300_000
    assert blocks.after(Cursor("s", 0), 10) == [], "the oldest goes first"
    assert blocks.after(Cursor("s", LAST - 1), 10) == [LOG[LAST]]
    monkeypatch.setattr(event_blocks, "monotonic", lambda: float("inf"))
    blocks.drop_idle()
    others.clear()
    assert EventBlocks.total_bytes == before


@pytest.mark.parametrize(("sequence", "start"), [(255, 255), (256, 255), (300, 255), (510, 255)])
def test_a_block_begins_at_a_multiple_of_its_size(sequence: int, start: int) -> None:
    assert block_start(Cursor("s", sequence)) == Cursor("s", start)
