"""The table of listens: rows that begin, and how far they were told. SQL module."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import orjson
import psycopg

from delivery.partitions.create import make_partitions
from eventhub.eventlog.stored import Cursor
from eventhub.postgresql import queries
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import cursor_of

SQL = queries.load("delivery/sql/listens.sql")


class Wanted(NamedTuple):
    """What a listen is told. `wish` is equal for the same."""

    mask: int  # 64 channel bits, unsigned
    filter: str | None  # in predicate form; None: registrations, or too long to be kept
    registrations: tuple[int, ...]
    wish: str


class Begun(NamedTuple):
    """A listen that begins: whose, at which door, and after which event."""

    zone_id: int
    client_id: int
    stream_id: int
    door: str
    name: str
    start: str  # of which kind: cursor, now, oldest, boot, time, gap, state, continued
    after: Cursor
    wanted: Wanted


class Place(NamedTuple):
    """What names a row."""

    at: datetime
    id: int


class Progress(NamedTuple):
    """How far a listen was told; `why` None: it goes on."""

    place: Place
    cursor: Cursor
    told: int  # events so far
    why: str | None = None
    ended_s: float | None = None  # so long ago


async def begin(connection: Connection, node: str, begun: Sequence[Begun]) -> list[Place]:
    """Write rows of listens that begin, in order; committed. Makes the day's partition if nobody
    has. Raises what psycopg raises.
    """
    values = {"node": node, "listens": _json(map(_begun, range(len(begun)), begun))}
    try:
        return await (await cursor_of(connection, Place).execute(SQL["begin"], values)).fetchall()
    except psycopg.errors.CheckViolation:  # no partition of the day
        await make_partitions(connection, waits=True)
        return await (await cursor_of(connection, Place).execute(SQL["begin"], values)).fetchall()


async def tell(connection: Connection, progress: Sequence[Progress]) -> None:
    """Write how far listens were told; those whose day has left are passed over."""
    times = [one.place.at for one in progress]
    values = {
        "listens": _json(map(_told, progress)),
        "oldest": min(times),
        "newest": max(times),
    }
    await connection.execute(SQL["tell"], values)


def _json(listens: Iterable[dict[str, Any]]) -> str:
    return orjson.dumps([*listens]).decode()


def _begun(number: int, begun: Begun) -> dict[str, Any]:
    fields = begun._asdict()
    wanted, after = fields.pop("wanted"), fields.pop("after")
    signed = wanted.mask - (1 << 64) if wanted.mask >> 63 else wanted.mask
    return {"number": number, **fields, **wanted._asdict(), "mask": signed, **_cursor(after)}


def _told(one: Progress) -> dict[str, Any]:
    ended = {"told": one.told, "why": one.why, "ended_s": one.ended_s}
    return {**one.place._asdict(), **_cursor(one.cursor), **ended}


def _cursor(cursor: Cursor) -> dict[str, Any]:
    return {"segment": cursor.segment or None, "sequence": cursor.sequence}
