"""The sequences in a reply of the management API: the position of the stream when the reply was
read (EMC-09), and the events that the call caused (EMC-10). Django module.

A context variable holds the one `Reply` of a request, so that services need no request: a view and
everything it calls run in one thread and one context.
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
from eventhub.eventlog.system import SYSTEM_STREAM_ID

_ACTION = re.compile(r"[!-~](?:[ -~]*[!-~])?")


@dataclass(slots=True)
class Reply:
    """The action and sequences of a reply. `position`: the last event that the reply reflects, of
    the stream `stream_id`. `action`: the id of the caller's action, empty if it only reads.
    """

    action: str = ""
    position: Cursor | None = None
    stream_id: int = SYSTEM_STREAM_ID
    caused: list[Appended] = field(default_factory=list)
    changes: dict[Resource, int] = field(
        default_factory=dict
    )  # the sequence of the last change by this call

    def add(self, appended: Sequence[Appended], changes: RecordedChanges = ()) -> None:
        """Add events that the call caused, and the changes that they announce."""
        self.caused += appended
        self.changes |= {resource: position.sequence for resource, position in changes}

    def headers(self, *, done: bool) -> dict[str, str]:
        """Return the headers of the reply; `done`: the call succeeded."""
        found = {"EventHub-Action": self.action} if self.action else {}
        position = self.position
        if done and self.caused:
            first, last = self.caused[0], self.caused[-1]
            found["EventHub-Caused"] = f"{first.sequence}-{last.sequence}"
            position = Cursor(last.segment, last.sequence)
        if position is not None:
            found["EventHub-Sequence"] = str(position.sequence)
            found["EventHub-Segment"] = position.segment
        return found


_CURRENT: ContextVar[Reply | None] = ContextVar("reply", default=None)


def about(stream_id: int, position: Cursor | None) -> None:
    """Make the current reply one about the events of a stream, at a position; the caller is known
    to have a grant on it.
    """
    if reply := _CURRENT.get():
        reply.stream_id, reply.position = stream_id, position


def current() -> Reply | None:
    """Return the reply of the current request; None outside of requests."""
    return _CURRENT.get()


@contextmanager
def replying(action: str = "") -> Iterator[Reply]:
    """Open a reply and make it the current one for the block."""
    reply = Reply(action)
    token = _CURRENT.set(reply)
    try:
        yield reply
    finally:
        _CURRENT.reset(token)


def action_id(text: str | None) -> str:
    """Return the id of the action: that of the header `EventHub-Action`, or a new one."""
    if text is None:
        return uuid.uuid4().hex
    if len(text) > limits.ACTION_CHARS_MAX or not _ACTION.fullmatch(text):
        raise InvalidField(
            f"An action is 1 to {limits.ACTION_CHARS_MAX} printable ASCII characters.",
            field="EventHub-Action",
        )
    return text


_SNAPSHOT = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;"
    f"SET LOCAL idle_in_transaction_session_timeout = '{limits.READING_IDLE_S_MAX}s'"
)


@contextmanager
def one_snapshot() -> Iterator[None]:
    """Read everything in the block from one snapshot, that of the first query. It may idle longer
    between queries (for an archive or Redis) than a change may, because it locks no head.
    """
    if connection.in_atomic_block:
        yield
        return
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(_SNAPSHOT)
        yield
