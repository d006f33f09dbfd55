"""Announces a change of this hub as an event of the stream `system`, committed with the change
itself.
"""

from collections.abc import Sequence
from typing import Any

import psycopg
from django.db import connection, transaction

from eventhub.eventlog import append
from eventhub.eventlog import system as log
from eventhub.eventlog.drafts import Appended, Draft
from eventhub.eventlog.system import Announcement


def announce(*, zone: str, type: str, attributes: dict[str, Any]) -> Appended:
    """Append the event inside the current transaction; call it LAST, because it holds the head of
    `system`.

    On commit the other processes are told. Never put a secret or a digest into the attributes.
    """
    [appended] = announce_all(zone=zone, announcements=[Announcement(type, attributes)])
    return appended


def announce_all(*, zone: str, announcements: Sequence[Announcement]) -> list[Appended]:
    """The same for several events at once, at least one, in their order."""
    return append_announced(log.drafts_of(zone, announcements))


def append_announced(drafts: Sequence[Draft]) -> list[Appended]:
    """The same for what was made ready by `drafts_of` before the heads were locked."""
    if not connection.in_atomic_block:
        raise RuntimeError("announce needs the transaction of the change it announces")
    found = append.append_in(raw_connection(), drafts)
    heads = {found[-1].stream_id: found[-1].sequence}
    # robust: the change is committed, so a failing NOTIFY must not look like a failed change;
    # readers poll as well
    transaction.on_commit(lambda: append.notify(raw_connection(), heads), robust=True)
    return found


def raw_connection() -> psycopg.Connection[Any]:
    """psycopg's connection under Django's, in Django's transaction, for the log's plain SQL."""
    connection.ensure_connection()
    raw: psycopg.Connection[Any] = connection.connection
    return raw
