"""The records of builds of match indexes: requests, progress and outcomes. SQL module.

They are for people, and for the backoff after a failure; the state of an index is in its manifest.
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import psycopg

from eventhub.base import limits
from eventhub.postgresql import queries
from eventhub.postgresql.rows import cursor_of, scalars

SQL = queries.load("registrations/sql/index_builds.sql")

Connection = psycopg.Connection[Any]
BuildState = Literal["waiting", "building", "built", "failed", "interrupted"]


class IndexBuildNote(NamedTuple):
    """The last build of a stream, or the request for one. Times in microseconds."""

    requested_at_us: int | None  # a build is requested that starts after this
    started_at_us: int | None
    ended_at_us: int | None
    stage: str  # of the builder, while it is running
    done: int  # versions of registrations that were read, and in later stages entries
    expected: int | None  # the approximate number of versions
    reason: str  # the error code, if it failed
    detail: str
    is_open: bool  # started and not ended
    is_alive: bool  # its builder sent a heartbeat lately

    @property
    def state(self) -> BuildState:
        """The state; `interrupted`: its builder sends no heartbeats, and another one will retry."""
        if self.is_open and self.is_alive:
            return "building"
        if self.requested_at_us is not None:
            return "waiting"
        if self.is_open:
            return "interrupted"
        return "failed" if self.reason else "built"


class _StreamBuild(NamedTuple):
    """The build of a stream."""

    stream_id: int
    build: IndexBuildNote


class IndexStream(NamedTuple):
    """A stream, with the fields that matter for its match index."""

    id: int
    zone: str | None  # None: the hub-wide stream
    name: str
    matching: str  # the strategy of its policy
    durability: str


def request(connection: Connection, stream_id: int) -> None:
    """Request a build as soon as possible, also after a failed one; if one is running, another one
    follows it.
    """
    connection.execute(SQL["request"], {"stream_id": stream_id})


def requested(connection: Connection) -> list[int]:
    """Return the streams with a requested build, in the order of the requests."""
    return scalars(connection).execute(SQL["requested"]).fetchall()


def backing_off(connection: Connection) -> set[int]:
    """Return the streams in backoff after a build that failed or was interrupted."""
    values = {
        "retry_s": limits.INDEX_BUILD_RETRY_S_BASE,
        "retry_s_max": limits.INDEX_BUILD_RETRY_S_MAX,
    }
    return set(scalars(connection).execute(SQL["backing_off"], values).fetchall())


def start(connection: Connection, stream_id: int, expected: int) -> None:
    """Record the start. It counts as an attempt at once, also if the builder is killed."""
    connection.execute(SQL["start"], {"stream_id": stream_id, "expected": expected})


def heartbeat(connection: Connection, stream_id: int, stage: str, done: int) -> None:
    connection.execute(SQL["heartbeat"], {"stream_id": stream_id, "stage": stage, "done": done})


def complete(connection: Connection, stream_id: int, done: int) -> None:
    connection.execute(SQL["complete"], {"stream_id": stream_id, "done": done})


def fail(connection: Connection, stream_id: int, reason: str, detail: str) -> None:
    """Record the failure of the open build, or of one that could not start."""
    values = {"stream_id": stream_id, "reason": reason, "detail": detail}
    connection.execute(SQL["fail"], values)


def builds(connection: Connection, ids: Sequence[int]) -> dict[int, IndexBuildNote]:
    """Return the last or requested builds of streams, by stream."""
    values = {"streams": list(ids), "silent_s": limits.INDEX_BUILD_SILENT_S}
    return dict(cursor_of(connection, _StreamBuild).execute(SQL["builds"], values))


def active(connection: Connection) -> list[IndexStream]:
    """Return the streams whose indexes are being built."""
    values = {"silent_s": limits.INDEX_BUILD_SILENT_S}
    return streams(connection, scalars(connection).execute(SQL["active"], values).fetchall())


def open_or_failed(connection: Connection) -> list[int]:
    """Return the streams whose last build did not succeed, or with a requested one."""
    return scalars(connection).execute(SQL["open_or_failed"]).fetchall()


def streams(connection: Connection, ids: Sequence[int]) -> list[IndexStream]:
    """Return the streams that exist, by zone and name."""
    return (
        cursor_of(connection, IndexStream)
        .execute(SQL["streams"], {"streams": list(ids)})
        .fetchall()
    )


def erased(connection: Connection, ids: Sequence[int]) -> list[int]:
    """Return those of the streams of which nothing is left."""
    return scalars(connection).execute(SQL["erased"], {"streams": list(ids)}).fetchall()


def zone_id(connection: Connection, zone: str) -> int | None:
    """Return the id of a zone, None if it does not exist."""
    found: int | None = scalars(connection).execute(SQL["zone_id"], (zone,)).fetchone()
    return found
