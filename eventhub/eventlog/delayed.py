"""Delayed events on their way to their table, and what became of them. Plain module.

The log knows of them only that a request with some is stored as a whole. They wait as timers
(registrations/timers), which append them when they are due.
"""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from eventhub.base.errors import DatabaseUnavailable
from eventhub.eventlog.drafts import Appended, Draft


class DelayedDraft(NamedTuple):
    """A draft that is appended when it is due. `at`: its index in the request."""

    at: int
    draft: Draft
    due_us: int


class MixedRequest(NamedTuple):
    """The drafts of a request of a client to one stream, some of which are delayed."""

    zone_id: int
    client_id: int
    now: list[Draft]  # appended at once
    delayed: list[DelayedDraft]


class WaitingEvent(NamedTuple):
    """A delayed event that waits as a timer. `at`: its index in the request."""

    at: int
    timer: int
    due_us: int


class StoredBefore(NamedTuple):
    """A delayed event whose id the log has stored. `at`: its index in the request."""

    at: int
    segment: str
    sequence: int


class MixedOutcome(NamedTuple):
    """What was stored of a request."""

    appended: list[Appended]
    waiting: list[WaitingEvent]
    before: list[StoredBefore]


StoreDelayed = Callable[[MixedRequest], Awaitable[MixedOutcome]]


async def store_nothing(_request: MixedRequest) -> MixedOutcome:
    """Refuse delayed events, where nothing stores them."""
    raise DatabaseUnavailable("This process stores no delayed events.")
