"""Pages of a stream's history: forward, backward, or from a time on. Plain."""

from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple

from eventhub import limits
from eventhub.client.http import Http, Request, stream_path
from eventhub.client.place import from_text, query_of
from eventhub.client.types import NOTHING, Cursor, Page, Start


class Wanted(NamedTuple):
    """Which events of a history: from where, and those that pass a filter as in `listen`."""

    start: Start = "oldest"
    mask: int | list[str] | None = None
    pairs: Mapping[str, Any] = NOTHING  # domain, type, attributes, application

    @classmethod
    def of(cls, start: Start, wanted: Mapping[str, Any]) -> "Wanted":
        pairs = {name: value for name, value in wanted.items() if name != "mask"}
        return cls(start, wanted.get("mask"), pairs)


async def one_page(http: Http, stream: str, wanted: Wanted, order: str, limit: int) -> Page:
    """One page. Raises HubProblem (GapError, SegmentMismatchError for a cursor of old)."""
    query = {
        "from": from_text(wanted.start),
        "order": order,
        "limit": str(limit),
        **query_of(wanted.mask, wanted.pairs),
    }
    request = Request("GET", stream_path(stream, "events"), query=query)
    return Page.of((await http.ask(request)).json)


async def forwards(http: Http, stream: str, wanted: Wanted) -> AsyncIterator[Page]:
    """Pages from a start to what was the last event when the first was asked for."""
    end: int | None = None
    while True:
        page = await one_page(http, stream, wanted, "forward", limits.CLIENT_PAGE_EVENTS)
        end = page.head if end is None else end
        yield page._replace(events=tuple(e for e in page.events if e.sequence <= end))
        if page.cursor is None or page.cursor.sequence >= end:
            return
        wanted = wanted._replace(start=page.cursor)


async def backwards(http: Http, stream: str, wanted: Wanted) -> AsyncIterator[Page]:
    """Pages from a start to the first event that is held, each page the newest first."""
    before: Cursor | None = None
    while True:
        page = await one_page(http, stream, wanted, "backward", limits.CLIENT_PAGE_EVENTS)
        yield page
        if page.cursor is None or page.cursor == before or page.cursor.sequence < page.first:
            return
        before = page.cursor
        wanted = wanted._replace(start=page.cursor)
