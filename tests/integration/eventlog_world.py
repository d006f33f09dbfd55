"""A database with the tables of the log alone, and streams in it, for the tests of the log."""

import itertools
from collections.abc import Iterator
from typing import Any

import psycopg

from eventhub.event.envelope import Event
from eventhub.event.protobuf_codec import encode
from eventhub.eventlog import streams
from eventhub.eventlog.append import append_in
from eventhub.eventlog.drafts import Appended, Draft, DraftProducer
from eventhub.eventlog.streams import StreamPolicy
from tests.databases import migrated_database

_names = (f"stream-{number}" for number in itertools.count(1))
Connection = psycopg.Connection[Any]


def log_database() -> Iterator[str]:
    """Create a new database, and yield its URL (a fixture)."""
    with migrated_database("log") as url:
        yield url


def new_stream(url: str, **policy: int) -> int:
    """Create a stream in zone 1; return its id."""
    with psycopg.connect(url) as connection:
        made = streams.create_stream(connection, 1, next(_names), StreamPolicy(**policy))
        assert made is not None
        return made.id


def payload(number: int, size: int = 0) -> bytes:
    """Build distinguishable stored bytes of at least a size."""
    return encode(Event("d", "t", {"n": number}, body=b"x" * size, content_type="x/y"))


def draft(stream_id: int, number: int = 0, *, size: int = 0) -> Draft:
    return Draft(stream_id, 1, payload(number, size))


def produced(stream_id: int, number: int, *, client: int = 1, incarnation: int = 1) -> Draft:
    """Build a draft with a producer's number."""
    return Draft(stream_id, 1, payload(number), DraftProducer(client, incarnation, number))


def append_now(url: str, *drafts: Draft) -> list[Appended]:
    """Append in a transaction of its own, without a NOTIFY."""
    with psycopg.connect(url) as connection, connection.transaction():
        return append_in(connection, list(drafts))


def stored(connection: Connection, stream_id: int) -> list[tuple[int, bytes]]:
    """Return (sequence, payload) of all events of a stream, in order."""
    rows = connection.execute(
        "SELECT e.sequence, e.payload FROM events e JOIN segments s ON s.id = e.segment_id"
        " WHERE s.stream_id = %s ORDER BY e.sequence, e.segment_id",
        (stream_id,),
    ).fetchall()
    return [(sequence, bytes(data)) for sequence, data in rows]


def segments(connection: Connection, stream_id: int) -> list[tuple[int, int | None, int | None]]:
    """Return (first, last, bytes) of the segments of a stream, in order; None while open."""
    return connection.execute(
        "SELECT first, last, bytes FROM segments WHERE stream_id = %s ORDER BY first, id",
        (stream_id,),
    ).fetchall()


def execute(url: str, statement: str, *args: Any) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement.encode(), args)
