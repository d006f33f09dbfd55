"""The sessions that the connections of one process serve: attaches and detaches them, saves their
positions in batches, and notices when a session was changed, deleted or attached elsewhere. SQL
module.

Such changes are announced, and the sessions that an announcement names are compared with the
database. All are compared only in case one was lost: with thousands that takes so long that it has
to be rare.

Concurrency contract: one event loop; `run`, `watch` and `follow` are one task each.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from time import monotonic
from typing import Any
from uuid import UUID

from psycopg_pool import AsyncConnectionPool

from delivery.listening.services import ListenerServices
from delivery.sessions.acknowledging import AcknowledgedSession, Acknowledgement, acknowledge
from delivery.sessions.attaching import SessionAttacher, bounded
from delivery.sessions.attachments import (
    AttachedSettings,
    PositionToSave,
    SessionPosition,
    altered,
    check,
    detach,
    name_of,
    positions,
    save,
    session_in_path,
    take_redeliveries,
)
from delivery.sessions.connected import ConnectedSession
from delivery.sessions.connected_sessions import ConnectedSessions
from delivery.sessions.matchers import SharedMatchers
from eventhub.access.names import id_in_path
from eventhub.access.principal import Principal
from eventhub.base import limits
from eventhub.base.errors import DatabaseUnavailable
from eventhub.base.event_loop import Waker, run_forever, run_in_slices, wait_until_set
from eventhub.base.grouped_calls import GroupedCalls
from eventhub.postgresql.connections import Connection, reading, reading_pool
from registrations.catalog import SessionOwner

# kinds of notifications between processes, each with the id of a session
ACKNOWLEDGED = "acknowledged"
ATTACHED = "attached"
_RESTS = 30  # times what a check of the connected sessions takes, until the next one


class SessionDelivery:
    """The connected sessions of one process."""

    def __init__(self, pool: AsyncConnectionPool[Connection], services: ListenerServices) -> None:
        self.matchers = SharedMatchers(services)
        self._pool = pool
        self._services = services
        self._connected = ConnectedSessions(services.feed)
        self._attacher = SessionAttacher(
            pool, self._connected, self._release, self.announce_attached
        )
        self._disconnecting = GroupedCalls(self._disconnect, limits.SESSIONS_ATTACHED_TOGETHER_MAX)
        self._changed: set[ConnectedSession] = set()  # whose positions are to be saved
        self._unsaved: set[ConnectedSession] = set()  # of which a save failed
        self._has_changed = asyncio.Event()
        self.ending = asyncio.Lock()  # one session after the other, of all sockets
        self._saving = asyncio.Lock()  # an older position is never saved after a newer one
        self._urgent = asyncio.Event()  # somebody waits for a save
        self._check_due = asyncio.Event()
        self._comparing = asyncio.Lock()  # no older settings are applied after newer ones
        self._altered: set[int] = set()  # sessions of which a change was announced
        self._some_altered = asyncio.Event()
        services.feed.session_listeners.add(self._note_changed_owner)
        services.log.tail.listeners[ACKNOWLEDGED] = self._note_acknowledged
        services.log.tail.listeners[ATTACHED] = self._note_altered

    async def name_in_path(self, principal: Principal, text: str) -> str:
        """Return the name of the client's session, which a path names by its name or its id: then
        it is looked up. Raises UnknownSession, InvalidName, FieldTooLong, DatabaseUnavailable.
        """
        id = id_in_path(session_in_path(text))
        if id is None:
            return text
        async with reading(self._pool) as connection:
            return await name_of(connection, principal.client_id, id)

    async def connect(
        self, principal: Principal, name: str, waker: Waker, transport: str
    ) -> tuple[ConnectedSession, list[SessionPosition]]:
        """Attach a connection to the client's session of that name; return it with its positions.
        The connection that served it before ends it. Call `disconnect` at the end.

        Raises UnknownSession, WrongSessionKind, SessionDisconnected, DatabaseUnavailable.
        """
        return await self._attacher.connect(principal, name, waker, transport)

    async def disconnect(self, sessions: Sequence[ConnectedSession]) -> set[int]:
        """Save the positions of sessions and end their attachments; return the ids of those for
        which that was done. It is not if another connection has replaced one, or if the database is
        unavailable: what was acknowledged last then comes again.
        """
        for session in sessions:
            self._remove(session)
        calls = [self._disconnecting.submit(session) for session in sessions]
        saved = await asyncio.shield(asyncio.gather(*calls))  # completed also if the caller ends
        return {session.settings.id for session, done in zip(sessions, saved, strict=True) if done}

    async def acknowledge(
        self, client_id: int, text: str, given: Sequence[Acknowledgement]
    ) -> AcknowledgedSession:
        """Acknowledge events of a client's session, by its name or its id; the connection that
        serves it, in any process, is notified. Raises what `acknowledge` of acknowledging.py
        raises, and DatabaseUnavailable.
        """
        async with reading(self._pool) as connection:
            found = await acknowledge(connection, client_id, text, given)
        if found.changed:
            self._services.log.tail.announce(ACKNOWLEDGED, found.id)
        return found

    def replace(self, session_id: int, attachment: UUID) -> None:
        """End the connection of this process that serves a session, unless it is this one."""
        session = self._connected.by_id.get(session_id)
        if session is not None and session.attachment != attachment:
            session.end("replaced")

    def announce_attached(self, session_id: int) -> None:
        """Have the connection of another process that serves a session end."""
        self._services.log.tail.announce(ATTACHED, session_id)

    async def positions(self, session: ConnectedSession) -> list[SessionPosition]:
        """Return the saved positions of a session, which may have new streams. Raises
        DatabaseUnavailable.
        """
        async with reading(self._pool) as connection:
            return bounded(await positions(connection, session.settings.id))

    def note_changed(self, session: ConnectedSession, *, urgent: bool = False) -> None:
        """Have the positions of a session saved soon; at once if somebody waits for it."""
        self._changed.add(session)
        self._has_changed.set()
        if urgent:
            self._urgent.set()

    async def run(self) -> None:
        """Save positions until cancelled."""
        while True:
            await self._has_changed.wait()
            await wait_until_set(self._urgent, limits.SESSION_POSITIONS_WRITE_S)
            self._has_changed.clear()
            self._urgent.clear()
            changed, self._changed = self._changed, set()
            try:
                async with self._saving:
                    await self._save(changed)
            except DatabaseUnavailable:
                await asyncio.sleep(limits.HEAD_POLL_INTERVAL_S)

    async def watch(self) -> None:
        """Check the connected sessions until cancelled, in case an announcement of a change was
        lost: their settings now and then, and once a second what is not in `system`, or less often
        with thousands of sessions: so that it takes 3 % of a core at most.
        """
        settings_s = 0.0
        while True:
            await self._connected.any.wait()
            is_due = await wait_until_set(self._check_due, limits.SESSION_CHECK_S)
            self._check_due.clear()
            started_s = monotonic()
            whole = is_due or started_s >= settings_s + limits.SESSION_SETTINGS_CHECK_S
            with suppress(DatabaseUnavailable):
                ids = [*self._connected.by_id]
                size = limits.SESSIONS_COMPARED_TOGETHER_MAX
                if whole:
                    size = limits.SESSIONS_CHECKED_TOGETHER_MAX
                for at in range(0, len(ids), size):
                    part = ids[at : at + size]
                    await self._check(part if whole else await self._changed_of(part))
                settings_s = started_s if whole else settings_s
            took_s = monotonic() - started_s
            await asyncio.sleep(max(limits.SESSION_CHECK_PAUSE_S, _RESTS * took_s))

    async def follow(self) -> None:
        """Apply what others change of connected sessions as soon as it is announced, until
        cancelled: acknowledgements over HTTP, other settings, and other connections.
        """
        while True:
            await self._some_altered.wait()
            self._some_altered.clear()
            due, self._altered = [*self._altered], set()
            try:
                for at in range(0, len(due), limits.SESSIONS_CHECKED_TOGETHER_MAX):
                    await self._check(due[at : at + limits.SESSIONS_CHECKED_TOGETHER_MAX])
            except DatabaseUnavailable:
                await asyncio.sleep(limits.HEAD_POLL_INTERVAL_S)
                self._altered.update(due)
                self._some_altered.set()

    def _note_changed_owner(self, owner: SessionOwner | None) -> None:
        """Note that a session or session group was changed; None: any may have been."""
        if owner is None:
            self._check_due.set()
        elif owner.session is not None:
            self._note_altered(owner.session)
        else:
            for id, session in self._connected.by_id.items():
                if session.settings.session_group == owner.session_group:
                    self._note_altered(id)

    def _note_altered(self, session_id: int) -> None:
        if session_id in self._connected.by_id:
            self._altered.add(session_id)
            self._some_altered.set()

    def _note_acknowledged(self, session_id: int) -> None:
        session = self._connected.by_id.get(session_id)
        if session is None:
            return
        if session.member is not None:
            session.member.wake()
            return
        self._note_altered(session_id)

    async def _disconnect(self, sessions: Sequence[ConnectedSession]) -> list[bool]:
        """Save the positions of sessions and detach them; return for which that was done."""
        last = [each for one in sessions for each in one.take_positions(unchanged=True)]
        try:
            async with self._saving, reading(self._pool) as connection:
                saved = await self._save_positions(connection, last, sessions)
                await detach(connection, [(one.settings.id, one.attachment) for one in sessions])
        except DatabaseUnavailable:
            return [False for _ in sessions]
        replaced = {each.session_id for each in last} - saved
        return [one.settings.id not in replaced for one in sessions]

    async def _save(self, changed: set[ConnectedSession]) -> None:
        """Save the positions of sessions, then have those answered that wait for it. Raises
        DatabaseUnavailable; then all positions of these sessions are saved the next time.
        """
        found: list[PositionToSave] = []
        acks: dict[ConnectedSession, list[dict[str, Any]]] = {}

        def take() -> Iterator[None]:
            for session in changed:
                acks[session], session.acks = session.acks, []
                found.extend(session.take_positions(unchanged=session in self._unsaved))
                yield

        try:
            await run_in_slices(take(), limits.SESSION_POSITIONS_SLICE_S)
            self._unsaved -= changed
            async with reading(self._pool) as connection:
                saved = await self._save_positions(connection, found, changed)
        except BaseException:
            connected = {session for session in changed if session in self._connected}
            self._unsaved |= connected
            self._changed |= connected
            self._has_changed.set()
            for session, messages in acks.items():
                session.acks[:0] = messages
            raise
        lost = {one.session_id for one in found} - saved
        for session in changed:
            if session.settings.id in lost:
                session.end("replaced")
            elif acks[session]:
                session.messages += acks[session]
                session.waker.set()

    async def _changed_of(self, ids: Iterable[int]) -> list[int]:
        """Return those of the connected sessions that another connection serves, or of which others
        have acknowledged events. Raises DatabaseUnavailable.
        """
        sessions = [self._connected.by_id[id] for id in ids if id in self._connected.by_id]
        known = {one.settings.id: (one.attachment, one.acknowledgements) for one in sessions}
        async with reading(self._pool) as connection:
            return await altered(connection, known)

    async def _check(self, ids: Iterable[int]) -> None:
        """Compare connected sessions with the database. Raises DatabaseUnavailable."""
        before = {id: self._connected.by_id[id] for id in ids if id in self._connected.by_id}
        if not before:
            return
        async with self._comparing, reading(self._pool) as connection:
            found = await check(connection, [*before])
            now_us = self._services.clock.now_us()
            for id, session in before.items():
                _compare(session, found.get(id), now_us)
                if id in found and found[id].acknowledgements != session.acknowledgements:
                    await self._apply(connection, session, found[id].acknowledgements)

    async def _apply(
        self, connection: Connection, session: ConnectedSession, acknowledgements: int
    ) -> None:
        """Apply the stored positions of a session, which know at least so many acknowledgements
        over HTTP.
        """
        if session.end_reason:
            return
        await self._take(connection, session, acknowledgements)
        if self._connected.by_id.get(session.settings.id) is session:
            self.note_changed(session)

    async def _save_positions(
        self,
        connection: Connection,
        found: Sequence[PositionToSave],
        sessions: Iterable[ConnectedSession],
    ) -> set[int]:
        """Save positions of sessions; return the ids of those that are attached: all of theirs are
        saved. If others have acknowledged events over HTTP that a session did not know of, it takes
        these first, while there can be no others.
        """
        by_id = {session.settings.id: session for session in sessions}
        saved: set[int] = set()
        for at in range(0, len(found), limits.SESSION_POSITIONS_PER_STATEMENT_MAX):
            batch = found[at : at + limits.SESSION_POSITIONS_PER_STATEMENT_MAX]
            given = {one.session_id: one.acknowledgements for one in batch}
            async with connection.transaction():
                attached = await save(connection, batch)
                for id, acknowledgements in attached.items():
                    if acknowledgements != given[id]:
                        await self._take(connection, by_id[id], acknowledgements)
                        last = by_id[id].take_positions(unchanged=True)
                        known = [one._replace(acknowledgements=acknowledgements) for one in last]
                        await save(connection, known)
            saved |= attached.keys()
        return saved

    async def _take(
        self, connection: Connection, session: ConnectedSession, acknowledgements: int
    ) -> None:
        """Take what others have stored: acknowledgements, and events to deliver again."""
        id = session.settings.id
        stored = await positions(connection, id)
        session.acknowledge_elsewhere(stored, acknowledgements)
        for one in await take_redeliveries(connection, id, session.attachment):
            if one.stream in session.readers:  # else it comes when the stream is started
                session.redeliver(*one)

    def _remove(self, session: ConnectedSession) -> None:
        self._changed.discard(session)
        self._unsaved.discard(session)
        self._connected.remove(session)

    def _release(self, session: ConnectedSession) -> None:
        """End the attachment of a session whose connection was cancelled meanwhile."""
        self._remove(session)
        self._disconnecting.submit(session)


@asynccontextmanager
async def delivering_sessions(
    database_url: str, services: ListenerServices
) -> AsyncIterator[SessionDelivery]:
    """Serve sessions inside the block, on connections of their own. The last connection must end
    before the block does.
    """
    pool = reading_pool(database_url, "sessions", limits.SESSION_CONNECTIONS_MAX)
    async with pool:
        delivery = SessionDelivery(pool, services)
        tasks = [
            asyncio.create_task(run_forever("session positions", delivery.run)),
            asyncio.create_task(run_forever("session watch", delivery.watch)),
            asyncio.create_task(run_forever("session acknowledgements", delivery.follow)),
        ]
        try:
            yield delivery
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def _compare(session: ConnectedSession, found: AttachedSettings | None, now_us: int) -> None:
    """End a session that its connection may not serve any more, or apply changed settings."""
    if found is None or found.deleted:
        session.end("deleted")
    elif found.attachment != session.attachment:
        session.end("replaced")
    elif found.settings.disconnected:
        session.end("request")
    elif found.settings != session.settings:
        session.change(found.settings, now_us)
