"""Reads of the record of listens, as far as the actor may see the client and the streams."""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from delivery.listens.rows import SQL
from eventhub.access.actor import Actor
from eventhub.access.system import raw_connection
from eventhub.eventlog import streams
from registrations.owners import heard, owner, require_some_listen

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNSIGNED = (1 << 64) - 1


class ListenId(NamedTuple):
    """What names a row of the record."""

    at_us: int
    id: int

    def __str__(self) -> str:
        return f"{self.at_us}.{self.id}"


class ListenRow(NamedTuple):
    """A listen as far as it is known. Its process may have been killed: `ended_at` is None then."""

    at: datetime
    id: int
    stream: str
    node: str
    door: str
    name: str
    start: str
    segment: str | None
    sequence: int
    mask: int
    filter: str | None
    registrations: list[int]
    told_segment: str | None
    told_sequence: int
    told: int
    seen_at: datetime
    ended_at: datetime | None
    why: str | None

    @property
    def place(self) -> ListenId:
        return ListenId(micros(self.at), self.id)


def list_listens(
    *, actor: Actor, client: str, stream: str | None, after: ListenId | None, rows_max: int
) -> list[ListenRow]:
    """A client's listens, the newest first, to the streams that the actor may listen to, or to one
    of them. Forbidden for another client's, but to who manages the zone, and if there is no such
    stream.
    """
    whose = owner(actor=actor, name=client)
    shown = heard(actor=actor)
    connection = raw_connection()
    stream_id = None
    if stream is not None:
        actor.require_listen(stream, field="stream")
        stream_id = streams.get_stream(connection, actor.zone_id, stream).id
    elif not shown.system:
        require_some_listen(actor=actor)
    values = {
        **shown._asdict(),
        "zone": actor.zone_id,
        "client": whose.id,
        "stream": stream_id,
        "at": None if after is None else _EPOCH + timedelta(microseconds=after.at_us),
        "id": None if after is None else after.id,
        "count": rows_max,
    }
    rows = [ListenRow(*row) for row in connection.execute(SQL["of_client"], values).fetchall()]
    return [row._replace(mask=row.mask & _UNSIGNED) for row in rows]


def micros(moment: datetime) -> int:
    """Microseconds since 1970."""
    return (moment - _EPOCH) // timedelta(microseconds=1)
