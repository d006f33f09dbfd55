"""Pages that the database packs hold what rows hold, and end before what they cannot hold."""

from collections.abc import AsyncIterator

import pytest

from eventhub.base.errors import Gone
from eventhub.event.compiled import transcoder
from eventhub.eventlog.log import Log
from eventhub.eventlog.packed import PackedPage, Page
from eventhub.eventlog.read import ReadLimits
from eventhub.eventlog.stored import StoredEvent
from tests.integration.eventlog_world import append_now, draft, execute, log_database, new_stream

database = pytest.fixture(scope="module")(log_database)
PAGE = ReadLimits(300, 300 * 200)
pytestmark = pytest.mark.skipif(
    not hasattr(transcoder, "packed_run"), reason="the transcoder was not built"
)


@pytest.fixture
async def log(database: str) -> AsyncIterator[Log]:
    async with Log.open(database_url=database) as log:
        yield log


def events_of(page: Page) -> list[StoredEvent]:
    return page.events(0, len(page)) if isinstance(page, PackedPage) else page


def parts(events: list[StoredEvent]) -> list[tuple[str, int, int, int, bytes]]:
    return [
        (each.segment, each.sequence, each.mask, each.appended_at_us, each.payload)
        for each in events
    ]


async def read_all(log: Log, stream: int) -> list[Page]:
    """Read a stream page by page, and compare with what a reader of rows gets."""
    pages: list[Page] = []
    async with log.follow(stream, "oldest") as follower:
        while page := await follower.next_page(PAGE):
            pages.append(page)
            follower.advance_to(events_of(page)[-1])
    rows: list[StoredEvent] = []
    async with log.follow(stream, "oldest") as follower:
        while found := await follower.catch_up():
            rows += found
            follower.advance_to(found[-1])
    assert parts([each for page in pages for each in events_of(page)]) == parts(rows)
    return pages


async def test_pages_of_a_segment_are_packed(database: str, log: Log) -> None:
    stream = new_stream(database, segment_events_max=1_000)
    append_now(database, *(draft(stream, number) for number in range(1, 2_201)))
    pages = await read_all(log, stream)
    assert [isinstance(page, PackedPage) for page in pages[:4]] == [False, True, True, True]
    assert [len(page) for page in pages[:4]] == [300, 300, 300, 100]  # the segment's end


async def test_a_page_ends_before_an_event_that_exceeds_its_share(database: str, log: Log) -> None:
    stream = new_stream(database)
    sizes = [20_000 if number in (700, 701) else 0 for number in range(1, 1_501)]
    append_now(database, *(draft(stream, at, size=size) for at, size in enumerate(sizes, 1)))
    pages = await read_all(log, stream)
    assert [len(page) for page in pages[:3]] == [300, 300, 99]
    assert [isinstance(page, PackedPage) for page in pages[:4]] == [False, True, True, False]
    packed = [len(page.packed) for page in pages if isinstance(page, PackedPage)]
    assert max(packed) <= PAGE.bytes_max + 300 * 28  # and what is before each
    assert isinstance(pages[-1], PackedPage)  # after a page of small events


async def test_a_dropped_segment_is_a_gap_for_a_reader_of_packed_pages(
    database: str, log: Log
) -> None:
    stream = new_stream(database, segment_events_max=1_000)
    append_now(database, *(draft(stream, number) for number in range(1, 1_101)))
    async with log.follow(stream, "oldest") as follower:
        for _ in range(2):
            page = await follower.next_page(PAGE)
            follower.advance_to(events_of(page)[-1])
        assert isinstance(page, PackedPage)
        execute(
            database,
            "UPDATE segments SET tier = 'dropped' WHERE stream_id = %s AND last = 1000",
            stream,
        )
        with pytest.raises(Gone) as gone:
            await follower.next_page(PAGE)
    assert gone.value.details["missed"] == {"first": 601, "last": 1_000}
