"""Notes of builds of match indexes: who waits for one, how far one is, how it ended. SQL module.

They are for people, and for the pause after a failure; what an index is says its own manifest.
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import psycopg

from eventhub.base import limits
from eventhub.postgresql import queries
from eventhub.postgresql.rows import cursor_of, scalars

SQL = queries.load("registrations/match_index/builds/sql/builds.sql")

Connection = psycopg.Connection[Any]
BuildState = Literal["waiting", "building", "built", "failed", "interrupted"]


class Build(NamedTuple):
    """The last build of a stream, or that somebody asked for one. Times in microseconds."""

    requested_at_us: int | None  # somebody waits for one that begins after this
    started_at_us: int | None
    ended_at_us: int | None
    stage: str  # of the builder, while it is at work
    done: int  # versions of registrations that were read, and in later stages entries
    expected: int | None  # how many versions there are, about
    reason: str  # an error's code, if it failed
    detail: str
    open: bool  # begun and not ended
    heard: bool  # its builder has said something lately

    @property
    def state(self) -> BuildState:
        """`interrupted`: its builder has gone without a word, and another one will try again."""
        if self.open and self.heard:
            return "building"
        if self.requested_at_us is not None:
            return "waiting"
        if self.open:
            return "interrupted"
        return "failed" if self.reason else "built"


class _OfStream(NamedTuple):
    """The build of a stream."""

    stream_id: int
    build: Build


class Stream(NamedTuple):
    """A stream as far as its match index goes."""

    id: int
    zone: str | None  # None: the hub-wide stream
    name: str
    matching: str  # the strategy of its policy
    durability: str


def ask(connection: Connection, stream_id: int) -> None:
    """A build is to begin as soon as it can, also when the last one failed; beside one that is
    under way another one.
    """
    connection.execute(SQL["ask"], {"stream_id": stream_id})


def asked(connection: Connection) -> list[int]:
    """Streams of which somebody waits for a build, in the order of asking."""
    return scalars(connection).execute(SQL["asked"]).fetchall()


def later(connection: Connection) -> set[int]:
    """Streams that are not tried yet, because the last build did not end well."""
    values = {
        "retry_s": limits.INDEX_BUILD_RETRY_S_BASE,
        "retry_s_max": limits.INDEX_BUILD_RETRY_S_MAX,
    }
    return set(scalars(connection).execute(SQL["later"], values).fetchall())


def begin(connection: Connection, stream_id: int, expected: int) -> None:
    """Counted as a try at once: one that is killed has had it."""
    connection.execute(SQL["begin"], {"stream_id": stream_id, "expected": expected})


def hear(connection: Connection, stream_id: int, stage: str, done: int) -> None:
    connection.execute(SQL["hear"], {"stream_id": stream_id, "stage": stage, "done": done})


def complete(connection: Connection, stream_id: int, done: int) -> None:
    connection.execute(SQL["complete"], {"stream_id": stream_id, "done": done})


def fail(connection: Connection, stream_id: int, reason: str, detail: str) -> None:
    """The build that is open has failed, or one that did not come as far as to begin."""
    values = {"stream_id": stream_id, "reason": reason, "detail": detail}
    connection.execute(SQL["fail"], values)


def builds(connection: Connection, ids: Sequence[int]) -> dict[int, Build]:
    """Of those streams that have one, or of which one is waited for."""
    values = {"streams": list(ids), "silent_s": limits.INDEX_BUILD_SILENT_S}
    return dict(cursor_of(connection, _OfStream).execute(SQL["builds"], values))


def at_work(connection: Connection) -> list[Stream]:
    """Whose indexes are being built now."""
    values = {"silent_s": limits.INDEX_BUILD_SILENT_S}
    return streams(connection, scalars(connection).execute(SQL["at_work"], values).fetchall())


def noted(connection: Connection) -> list[int]:
    """Streams whose last build did not end well, or of which somebody waits for one."""
    return scalars(connection).execute(SQL["noted"]).fetchall()


def streams(connection: Connection, ids: Sequence[int]) -> list[Stream]:
    """Those of the ids that there are, by zone and name."""
    return cursor_of(connection, Stream).execute(SQL["streams"], {"streams": list(ids)}).fetchall()


def zone_id(connection: Connection, zone: str) -> int | None:
    """The zone's id, if there is one of that name."""
    found: int | None = scalars(connection).execute(SQL["zone_id"], (zone,)).fetchone()
    return found
