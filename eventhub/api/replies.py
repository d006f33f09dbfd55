"""What a reply of the management API says of sequences: where the stream stood when the reply was
read (EMC-09), and what the call caused (EMC-10). Django module.

There is one `Reply` per request, in a context variable, so that services need no request: a view
and all that it calls run in one thread and one context.
"""

import re
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from django.db import connection, transaction

from eventhub.base import limits
from eventhub.base.errors import InvalidField
from eventhub.eventlog.drafts import Appended
from eventhub.eventlog.resource_changes import RecordedChanges, Resource
from eventhub.eventlog.stored import Cursor

_ACTION = re.compile(r"[!-~](?:[ -~]*[!-~])?")


@dataclass(slots=True)
class Reply:
    """`place`: the last event that the reply can know of. `action`: the id of what the caller does,
    empty in one that only reads.
    """

    action: str = ""
    place: Cursor | None = None
    caused: list[Appended] = field(default_factory=list)
    changes: dict[Resource, int] = field(default_factory=dict)  # what this call told of them last

    def add(self, appended: Sequence[Appended], told: RecordedChanges = ()) -> None:
        """The call has caused these events, and told these changes by them."""
        self.caused += appended
        self.changes |= {resource: place.sequence for resource, place in told}

    def headers(self, *, done: bool) -> dict[str, str]:
        """The headers of the reply; `done`: the call was not refused."""
        found = {"EventHub-Action": self.action} if self.action else {}
        place = self.place
        if done and self.caused:
            first, last = self.caused[0], self.caused[-1]
            found["EventHub-Caused"] = f"{first.sequence}-{last.sequence}"
            place = Cursor(last.segment, last.sequence)
        if place is not None:
            found["EventHub-Sequence"] = str(place.sequence)
            found["EventHub-Segment"] = place.segment
        return found


_CURRENT: ContextVar[Reply | None] = ContextVar("reply", default=None)


def current() -> Reply | None:
    """The reply to the request that is being answered; None outside of requests."""
    return _CURRENT.get()


@contextmanager
def replying(action: str = "") -> Iterator[Reply]:
    """A reply, the current one until the end."""
    reply = Reply(action)
    token = _CURRENT.set(reply)
    try:
        yield reply
    finally:
        _CURRENT.reset(token)


def action_id(text: str | None) -> str:
    """What the caller calls the action in `EventHub-Action`, or an id made for it."""
    if text is None:
        return uuid.uuid4().hex
    if len(text) > limits.ACTION_CHARS_MAX or not _ACTION.fullmatch(text):
        raise InvalidField(
            f"An action is 1 to {limits.ACTION_CHARS_MAX} printable characters of ASCII.",
            field="EventHub-Action",
        )
    return text


_SNAPSHOT = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;"
    f"SET LOCAL idle_in_transaction_session_timeout = '{limits.READING_IDLE_S_MAX}s'"
)


@contextmanager
def one_snapshot() -> Iterator[None]:
    """Everything read within is of one moment: the first query's. It may wait longer between two
    queries than a change may, for an archive or for Redis: it holds no head.
    """
    if connection.in_atomic_block:
        yield
        return
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(_SNAPSHOT)
        yield
