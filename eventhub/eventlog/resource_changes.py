"""The last change of each resource, as a sequence in `system`, for conditional requests (EMC-12).
SQL module.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import psycopg

from eventhub.base.errors import UnknownStream
from eventhub.eventlog.drafts import Appended
from eventhub.eventlog.errors import Changed
from eventhub.eventlog.stored import Cursor
from eventhub.postgresql import queries
from eventhub.postgresql.arrays import adapt, int8_array, text_array
from eventhub.postgresql.rows import cursor_of

SQL = queries.load("eventhub/eventlog/sql/resource_changes.sql")

Connection = psycopg.Connection[Any]


class Resource(NamedTuple):
    """A resource with conditional changes: a client, a stream, a registration, ..."""

    kind: str
    zone_id: int
    name: str  # its name or id


class _Change(NamedTuple):
    """The sequence in `system` of a resource's last change."""

    name: str
    sequence: int


RecordedChanges = Sequence[tuple[Resource, Appended]]


def record(connection: Connection, changes: RecordedChanges) -> None:
    """Store the events that announced the changes, in their transaction, after the append. The head
    of `system` is locked, so there is one statement per kind, with parameters bound by the server.
    """
    cursor = psycopg.Cursor(connection)
    adapt(cursor)
    for values in _by_kind(changes):
        cursor.execute(SQL["record"], values)


async def record_in(connection: psycopg.AsyncConnection[Any], changes: RecordedChanges) -> None:
    """Store the events like `record`, on an asynchronous connection."""
    cursor = connection.cursor()
    adapt(cursor)
    for values in _by_kind(changes):
        await cursor.execute(SQL["record"], values)


def last_changes(
    connection: Connection, kind: str, zone_id: int, names: Iterable[str]
) -> dict[str, int]:
    """Return the sequence in `system` of the last change of each, by name; 0 if there is none."""
    found = dict.fromkeys(names, 0)
    values = (kind, zone_id, list(found))
    rows = cursor_of(connection, _Change).execute(SQL["last_changes"], values).fetchall()
    return found | {row.name: row.sequence for row in rows}


def require_unchanged(connection: Connection, resource: Resource, since: int | None) -> None:
    """Raise Changed, with the `current` sequence, if the resource changed after `since`; None: no
    condition.

    Call it with the resource's row locked: then it holds to the end of the transaction. A sequence
    that `system` has not reached is of another life of the log, so it counts as changed.
    """
    if since is None:
        return
    current = last_changes(connection, resource.kind, resource.zone_id, [resource.name])
    if current[resource.name] > since or since > position(connection).sequence:
        raise Changed(current=current[resource.name])


def position(connection: Connection, stream_id: int = 1) -> Cursor:
    """Return the last event of a stream, by default `system`. Raises UnknownStream."""
    found = cursor_of(connection, Cursor).execute(SQL["position"], (stream_id,)).fetchone()
    if found is None:
        raise UnknownStream
    return found


def _by_kind(changes: RecordedChanges) -> Iterator[tuple[Any, ...]]:
    """Yield the parameters of `record`; of several changes of one resource the last one counts."""
    kinds: dict[tuple[str, int, str], dict[str, int]] = {}
    for resource, event in changes:
        kind = (resource.kind, resource.zone_id, event.segment)
        kinds.setdefault(kind, {})[resource.name] = event.sequence
    for kind, found in kinds.items():
        yield *kind, text_array(list(found)), int8_array(list(found.values()))
