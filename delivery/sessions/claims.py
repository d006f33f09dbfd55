"""Claims: events of a session that were handed out to a holder and are not acknowledged. Every
process may hand out, acknowledge and extend them; the row of the session, which is locked first,
keeps their changes apart. SQL module.

A session's position in a stream is a cursor, the acknowledged events above it, and how far events
were claimed: each matching event up to there is acknowledged, or one of the claims.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from uuid import UUID

import orjson

from delivery.sessions.attachments import SessionPosition, SessionSettings
from delivery.sessions.errors import SessionDisconnected, SessionReplaced
from eventhub.access.names import id_in_path
from eventhub.access.sessions import UnknownSession
from eventhub.base import limits
from eventhub.eventlog.stored import Cursor
from eventhub.postgresql import queries
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import fetch_all, fetch_one, fetch_value

SQL = queries.load("delivery/sql/session_claims.sql")


class PulledSettings(NamedTuple):
    """A session, and the connection that serves it; `pulled`: those are pulls. `queue_id`: the
    session that has the position of its group, if the group shares, and by which key it does.
    """

    settings: SessionSettings
    attachment: UUID | None
    pulled: bool
    queue_id: int | None
    share_by: str


class Holder(NamedTuple):
    """Who events of a session are handed out to: the session itself, or for the position of a
    group a member; and the attachment that must serve the holder. None: it does not matter which.
    """

    session_id: int
    holder_id: int
    attachment: UUID | None = None


class ClaimTerms(NamedTuple):
    """How many events to hand out, in which streams, for how long, and how often each may be (None:
    without end).
    """

    streams: Sequence[int]
    events: int
    window: int  # events that the holder may have
    visibility_s: float
    attempts_max: int | None


class ClaimCandidate(NamedTuple):
    """An event that nobody may have claimed yet. `order_key`: None unless ordered by key."""

    stream_id: int
    segment: str
    sequence: int
    order_key: int | None


class AcknowledgedClaims(NamedTuple):
    """Events of a stream that a holder acknowledges: those up to a sequence, and single ones."""

    stream_id: int
    through: int | None
    sequences: Sequence[int]


class ExtendedClaims(NamedTuple):
    """Events of a stream that a holder has for so many seconds from now; 0 gives them back."""

    stream_id: int
    sequences: Sequence[int]
    visibility_s: float


class ChangedClaims(NamedTuple):
    """How many claims were acknowledged, and of how many the time was changed."""

    acknowledged: int = 0
    extended: int = 0


class RenewedClaim(NamedTuple):
    """An event that is handed out again."""

    stream_id: int
    segment: str
    sequence: int
    attempts: int


class ClaimedPlaces(NamedTuple):
    """Of the candidates, the places (from 0) of those that were claimed, and of those that wait for
    room, or for the end of other claims of their key. The others are settled.
    """

    claimed: Sequence[int]
    waiting: Sequence[int]


class ClaimState(NamedTuple):
    """The state of a session for a holder: how often an event is handed out at most (None: without
    end), in how many seconds one may be handed out again (None: none is claimed), and how many the
    holder has.
    """

    attachment: UUID | None
    disconnected: bool
    window_events: int
    attempts_max: int | None
    due_s: float | None
    held: int

    @property
    def room(self) -> int:
        """How many more events the holder may have."""
        return self.window_events - self.held


class _SessionStream(NamedTuple):
    id: int
    name: str


class _LockedSession(NamedTuple):
    id: int
    attachment: UUID | None


class _EndedClaims(NamedTuple):
    stream_id: int
    events: int


class _ClaimPlace(NamedTuple):
    place: int
    claimed: bool


async def find_pulled(connection: Connection, client_id: int, text: str) -> PulledSettings | None:
    """Return a client's session by its name or its id; None if it has none."""
    values = {"client_id": client_id, "session_id": id_in_path(text), "name": text}
    return await fetch_one(connection, PulledSettings, SQL["find"], values)


async def attach_pulls(connection: Connection, session_id: int, attachment: UUID) -> UUID | None:
    """Have pulls serve a session, instead of a connection; return the attachment of all its pulls,
    None if the session was deleted.
    """
    values = {"session_id": session_id, "attachment": attachment}
    found: UUID | None = await fetch_value(connection, SQL["attach"], values)
    return found


@asynccontextmanager
async def changing(connection: Connection, holder: Holder) -> AsyncIterator[None]:
    """Change the claims of a session in one transaction. Raises SessionReplaced if a connection
    serves it meanwhile, or it was deleted.
    """
    async with connection.transaction():
        found = await lock(connection, holder)
        if holder.session_id not in found or found.get(holder.holder_id) != holder.attachment:
            raise SessionReplaced(field="session")
        yield


async def lock(connection: Connection, holder: Holder) -> dict[int, UUID | None]:
    """Lock a session and its holder until the end of the transaction; return the attachments of
    those that were not deleted.
    """
    locked = await fetch_all(connection, _LockedSession, SQL["lock"], _of(holder))
    return {one.id: one.attachment for one in locked}


async def change(
    connection: Connection,
    holder: Holder,
    given: Sequence[AcknowledgedClaims],
    extended: Sequence[ExtendedClaims],
) -> ChangedClaims:
    """End and extend claims of the holder of a session that is locked, and advance its position."""
    ended = await _acknowledge(connection, holder, given) if given else {}
    if ended:
        await advance(connection, holder.session_id, dict.fromkeys(ended))
    count = await extend(connection, holder, extended) if extended else 0
    return ChangedClaims(sum(ended.values()), count)


async def _acknowledge(
    connection: Connection, holder: Holder, given: Sequence[AcknowledgedClaims]
) -> dict[int, int]:
    """End claims of the holder; return how many in each stream."""
    found = orjson.dumps([one._asdict() for one in given]).decode()
    values = {**_of(holder), "acknowledged": found}
    ended = await fetch_all(connection, _EndedClaims, SQL["acknowledge"], values)
    return {one.stream_id: one.events for one in ended}


async def extend(connection: Connection, holder: Holder, given: Sequence[ExtendedClaims]) -> int:
    """Change until when the holder has events; return how many."""
    values = {**_of(holder), "extended": orjson.dumps([one._asdict() for one in given]).decode()}
    return int(await fetch_value(connection, SQL["extend"], values))


async def retain(
    connection: Connection, holder: Holder, streams: Sequence[int], visibility_s: float
) -> None:
    """Let the holder have everything that it has of these streams for so many seconds from now."""
    values = {**_of(holder), "streams": [*streams], "visibility_s": visibility_s}
    await connection.execute(SQL["retain"], values)


async def give_back(connection: Connection, holder: Holder) -> None:
    """Give back everything that the holder has."""
    await connection.execute(SQL["give_back"], _of(holder))


async def skip(connection: Connection, holder: Holder, terms: ClaimTerms) -> dict[int, int]:
    """End the claims of events that were handed out as often as they may be and whose time is over,
    and have that announced; return how many in each stream. Call `advance` then.
    """
    if terms.attempts_max is None:
        return {}
    values = {
        "session_id": holder.session_id,
        "streams": [*terms.streams],
        "attempts_max": terms.attempts_max,
        "skipped_max": limits.SKIPPED_PER_STATEMENT_MAX,
        "named_max": limits.SKIPPED_NAMED_MAX,
    }
    ended = await fetch_all(connection, _EndedClaims, SQL["skip"], values)
    return {one.stream_id: one.events for one in ended}


async def renew(connection: Connection, holder: Holder, terms: ClaimTerms) -> list[RenewedClaim]:
    """Claim events again whose time is over, those that were claimed first at first."""
    values = {**_of(holder), **_terms(terms), "attempts_max": terms.attempts_max}
    return await fetch_all(connection, RenewedClaim, SQL["renew"], values)


async def claim(
    connection: Connection, holder: Holder, terms: ClaimTerms, found: Sequence[ClaimCandidate]
) -> ClaimedPlaces:
    """Claim events for the first time, in their order."""
    values = {
        **_of(holder),
        **_terms(terms),
        "streams": [one.stream_id for one in found],
        "segments": [one.segment for one in found],
        "sequences": [one.sequence for one in found],
        "keys": [one.order_key for one in found],
        "acknowledged_max": limits.SESSION_QUEUE_EVENTS_MAX,
    }
    places = await fetch_all(connection, _ClaimPlace, SQL["claim"], values)
    return ClaimedPlaces(
        sorted(each.place - 1 for each in places if each.claimed),
        sorted(each.place - 1 for each in places if not each.claimed),
    )


async def advance(
    connection: Connection, session_id: int, reached: Mapping[int, Cursor | None]
) -> None:
    """Advance the positions of streams to where their events are claimed or settled; None: only the
    claims have changed.
    """
    values = {
        "session_id": session_id,
        "streams": [*reached],
        "segments": [None if one is None else one.segment for one in reached.values()],
        "sequences": [None if one is None else one.sequence for one in reached.values()],
    }
    await connection.execute(SQL["advance"], values)


async def settle(connection: Connection, session_id: int, events: Sequence[tuple[int, int]]) -> int:
    """End the claims of events, named by stream and sequence, that are not to be delivered."""
    values = {
        "session_id": session_id,
        "streams": [stream for stream, _ in events],
        "sequences": [sequence for _, sequence in events],
    }
    return int(await fetch_value(connection, SQL["settle"], values))


async def due(connection: Connection, holder: Holder) -> ClaimState:
    """Return when an event may be handed out again. Raises SessionReplaced if another connection
    serves the session, UnknownSession if it was deleted, SessionDisconnected.
    """
    found = await fetch_one(connection, ClaimState, SQL["due"], _of(holder))
    if found is None:
        raise UnknownSession(field="session")
    if found.disconnected:
        raise SessionDisconnected(field="session")
    if found.attachment != holder.attachment:
        raise SessionReplaced(field="session")
    return found


async def start_positions(connection: Connection, session_id: int) -> list[SessionPosition]:
    """Return where to read the streams of a session on: after what is claimed or settled."""
    values = {"session_id": session_id, "streams_max": limits.SESSION_STREAMS_MAX + 1}
    return await fetch_all(connection, SessionPosition, SQL["positions"], values)


async def stream_ids(
    connection: Connection, session_id: int, names: Sequence[str]
) -> dict[str, int]:
    """Return the ids of the session's streams among these, by name."""
    values = {"session_id": session_id, "names": [*names]}
    found = await fetch_all(connection, _SessionStream, SQL["streams"], values)
    return {one.name: one.id for one in found}


async def restart(connection: Connection, session_id: int, stream_id: int, at: Cursor) -> None:
    """Begin again at a position in another history of the stream."""
    values = {"session_id": session_id, "stream_id": stream_id, **at._asdict()}
    await connection.execute(SQL["restart"], values)


def _of(holder: Holder) -> dict[str, Any]:
    return {"session_id": holder.session_id, "holder_id": holder.holder_id}


def _terms(terms: ClaimTerms) -> dict[str, Any]:
    return {
        "streams": [*terms.streams],
        "events_max": terms.events,
        "window": terms.window,
        "visibility_s": terms.visibility_s,
    }
