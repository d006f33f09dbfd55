"""Acknowledges events of a session from any process, over HTTP: the position is changed in the
database, and the process whose connection serves the session is notified. SQL module.

A connection saves its own positions only while it knows every acknowledgement that was stored here
(delivery.py), so that neither undoes the other. What is acknowledged is claimed no more
(claims.py); a member of a group that shares acknowledges what it has claimed, and nothing else.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import orjson

from delivery.sessions import claims
from delivery.sessions.attachments import SQL, SessionPosition, SessionSettings, required
from delivery.sessions.errors import (
    AcknowledgementsFull,
    SequenceAhead,
    SequencesRequired,
    StreamOfNoRegistration,
)
from eventhub.base import limits
from eventhub.eventlog.stored import Cursor
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import fetch_all, fetch_one

_ASCENDING = ("none", "fifo")  # the orders in which the sequences of a stream ascend


class Acknowledgement(NamedTuple):
    """What a consumer acknowledges in one stream: every event up to a sequence, and single ones.
    `again`: events that it could not process, and that are to be delivered again at once.
    """

    stream: str
    through: int | None = None
    sequences: Sequence[int] = ()
    again: Sequence[int] = ()


class AcknowledgedSession(NamedTuple):
    """A session after an acknowledgement, and its cursors in the streams that it names."""

    id: int
    name: str
    cursors: dict[str, Cursor]
    changed: bool  # whether the connection that serves it has to be notified


class _PositionAndHead(NamedTuple):
    position: SessionPosition
    head: int
    is_claimed: bool  # whether pulls have claimed events since the last connection


async def acknowledge(
    connection: Connection, client_id: int, text: str, given: Sequence[Acknowledgement]
) -> AcknowledgedSession:
    """Acknowledge events of a client's session, by its name or its id, all or none; the transaction
    commits before it returns. Tell the process that serves the session (`ACKNOWLEDGED` of
    delivery.py) if something `changed`. The acknowledgements of a best-effort session have no
    effect, nor has that of a member of a group that shares on events that it has not claimed.

    Raises UnknownSession, WrongSessionKind; with the place in the request StreamOfNoRegistration,
    SequenceAhead, SequencesRequired and AcknowledgementsFull.
    """
    async with connection.transaction():
        found = await claims.find_pulled(connection, client_id, text)
        settings = required(None if found is None else found.settings)
        if found is not None and found.queue_id is not None:
            return await _acknowledge_claims(connection, settings, found.queue_id, given)
        values = {"session_id": settings.id}
        locked = required(await fetch_one(connection, SessionSettings, SQL["lock"], values))
        return await _acknowledge(connection, locked, given)


async def _acknowledge_claims(
    connection: Connection,
    settings: SessionSettings,
    queue_id: int,
    given: Sequence[Acknowledgement],
) -> AcknowledgedSession:
    """Acknowledge what a member has claimed for itself of the events of its group."""
    holder = claims.Holder(queue_id, settings.id)
    await claims.lock(connection, holder)
    before = await _positions(connection, holder.session_id, given)
    ids = {name: one.position.stream_id for name, one in before.items()}
    changed = await claims.change(
        connection,
        holder,
        [claims.AcknowledgedClaims(ids[one.stream], one.through, one.sequences) for one in given],
        [claims.ExtendedClaims(ids[one.stream], one.again, 0.0) for one in given if one.again],
    )
    cursors = await _cursors(connection, holder.session_id, given)
    return AcknowledgedSession(settings.id, settings.name, cursors, changed=any(changed))


async def _acknowledge(
    connection: Connection, settings: SessionSettings, given: Sequence[Acknowledgement]
) -> AcknowledgedSession:
    """Acknowledge events of a session that is locked."""
    before = await _positions(connection, settings.id, given)
    after = {stream: one.position for stream, one in before.items()}
    for index, one in enumerate(given):
        if one.through is not None and settings.delivery_order not in _ASCENDING:
            raise SequencesRequired(
                field=f"streams.{index}.sequence", order=settings.delivery_order
            )
        after[one.stream] = settled(after[one.stream], one)
        if len(after[one.stream].acknowledged) > limits.SESSION_ACKNOWLEDGED_MAX:
            cursor = after[one.stream].cursor.sequence
            raise AcknowledgementsFull(field=f"streams.{index}.sequences", cursor=cursor)
    changed = [each for stream, each in after.items() if each != before[stream].position]
    again = [one for one in given if one.again]
    if not (changed or again) or not settings.reliable:
        cursors = {stream: one.position.cursor for stream, one in before.items()}
        return AcknowledgedSession(settings.id, settings.name, cursors, changed=False)
    if changed:
        await _store(connection, settings.id, changed)
    claimed = [one.stream_id for one in changed if before[one.stream].is_claimed]
    if claimed:
        await claims.advance(connection, settings.id, dict.fromkeys(claimed))
    if again:
        await _redeliver(connection, settings.id, before, again)
    cursors = await _cursors(connection, settings.id, given)
    return AcknowledgedSession(settings.id, settings.name, cursors, changed=True)


async def _redeliver(
    connection: Connection,
    session_id: int,
    positions: Mapping[str, _PositionAndHead],
    given: Sequence[Acknowledgement],
) -> None:
    """Have events delivered again: by pulls if they have claimed some, else by the connection."""
    claimed: list[claims.ExtendedClaims] = []
    delivered: dict[int, list[int]] = {}  # by stream
    for one in given:
        found = positions[one.stream]
        if found.is_claimed:
            claimed.append(claims.ExtendedClaims(found.position.stream_id, one.again, 0.0))
        else:
            delivered.setdefault(found.position.stream_id, []).extend(one.again)
    if claimed:
        await claims.extend(connection, claims.Holder(session_id, session_id), claimed)
    if delivered:
        rows = [{"stream_id": id, "sequences": each} for id, each in delivered.items()]
        values = {
            "session_id": session_id,
            "events": orjson.dumps(rows).decode(),
            "events_max": limits.SESSION_QUEUE_EVENTS_MAX,
        }
        await connection.execute(SQL["redeliver"], values)


def settled(position: SessionPosition, given: Acknowledgement) -> SessionPosition:
    """Return a position after an acknowledgement. Its cursor also passes single acknowledged events
    that follow it without a hole. The segment of an advanced cursor is not known here: "".
    """
    cursor = max(position.cursor.sequence, given.through or 0)
    above = sorted({one for one in chain(position.acknowledged, given.sequences) if one > cursor})
    passed = 0
    while passed < len(above) and above[passed] == cursor + 1:
        cursor += 1
        passed += 1
    advanced = cursor > position.cursor.sequence
    return position._replace(
        cursor=Cursor("", cursor) if advanced else position.cursor,
        acknowledged=above[passed:],
    )


async def _positions(
    connection: Connection, session_id: int, given: Sequence[Acknowledgement]
) -> dict[str, _PositionAndHead]:
    """Return the positions of a session by stream. Raises StreamOfNoRegistration, SequenceAhead."""
    values = {"session_id": session_id, "streams": [one.stream for one in given]}
    rows = await fetch_all(connection, _PositionAndHead, SQL["positions_and_heads"], values)
    found = {one.position.stream: one for one in rows}
    for index, one in enumerate(given):
        if one.stream not in found:
            raise StreamOfNoRegistration(field=f"streams.{index}.stream", stream=one.stream)
        _require_stored(one, found[one.stream].head, index)
    return found


async def _cursors(
    connection: Connection, session_id: int, given: Sequence[Acknowledgement]
) -> dict[str, Cursor]:
    """Return the stored cursors of a session by stream."""
    found = await _positions(connection, session_id, given)
    return {stream: one.position.cursor for stream, one in found.items()}


def _require_stored(given: Acknowledgement, head: int, index: int) -> None:
    """Raise SequenceAhead at the place of a sequence that no event has yet."""
    if given.through is not None and given.through > head:
        raise SequenceAhead(field=f"streams.{index}.sequence", head=head)
    for at, sequence in enumerate(given.sequences):
        if sequence > head:
            raise SequenceAhead(field=f"streams.{index}.sequences.{at}", head=head)
    for at, sequence in enumerate(given.again):
        if sequence > head:
            raise SequenceAhead(field=f"streams.{index}.nak.{at}", head=head)


async def _store(
    connection: Connection, session_id: int, changed: Sequence[SessionPosition]
) -> None:
    rows = [
        {
            "stream_id": one.stream_id,
            "sequence": one.cursor.sequence,
            "acknowledged": one.acknowledged,
        }
        for one in changed
    ]
    values = {"session_id": session_id, "positions": orjson.dumps(rows).decode()}
    await connection.execute(SQL["settle"], values)
