"""Attaches connections to sessions, many at once: thousands come back together after a restart.
SQL module.
"""

import asyncio
import os
import socket
from collections.abc import Callable, Sequence
from typing import NamedTuple
from weakref import WeakValueDictionary

from psycopg_pool import AsyncConnectionPool

from delivery.sessions.attachments import (
    Attached,
    SessionPosition,
    SessionSettings,
    attach,
    find_sessions,
    required,
)
from delivery.sessions.connected import ConnectedSession
from delivery.sessions.connected_sessions import ConnectedSessions
from delivery.sessions.errors import SessionDisconnected
from eventhub.access.principal import Principal
from eventhub.access.sessions import UnknownSession
from eventhub.base import limits
from eventhub.base.errors import EventHubError, LimitReached
from eventhub.base.event_loop import Waker
from eventhub.base.grouped_calls import GroupedCalls
from eventhub.postgresql.connections import Connection, reading

Connected = tuple[ConnectedSession, list[SessionPosition]]


class _SessionRequest(NamedTuple):
    """A connection that asks for the session of a client."""

    client_id: int
    name: str
    waker: Waker
    transport: str

    @property
    def key(self) -> tuple[int, str]:
        return self.client_id, self.name


class SessionAttacher:
    """Attaches the connections of one process. `release` is given sessions whose connections were
    cancelled meanwhile.
    """

    def __init__(
        self,
        pool: AsyncConnectionPool[Connection],
        connected: ConnectedSessions,
        release: Callable[[ConnectedSession], None],
    ) -> None:
        self._pool = pool
        self._connected = connected
        self._release = release
        self._calls = GroupedCalls(self._attach, limits.SESSIONS_ATTACHED_TOGETHER_MAX)
        self._locks: WeakValueDictionary[tuple[int, str], asyncio.Lock] = WeakValueDictionary()

    async def connect(
        self, principal: Principal, name: str, waker: Waker, transport: str
    ) -> Connected:
        """Attach a connection to the client's session of that name; return it with its positions.

        Raises UnknownSession, WrongSessionKind, SessionDisconnected, LimitReached,
        DatabaseUnavailable.
        """
        request = _SessionRequest(principal.client_id, name, waker, transport)
        async with self._locks.setdefault(request.key, asyncio.Lock()):
            call = self._calls.submit(request)
            try:
                found = await asyncio.shield(call)
            except asyncio.CancelledError:
                call.add_done_callback(self._abandon)
                raise
        if isinstance(found, EventHubError):
            raise found
        return found

    def _abandon(self, call: "asyncio.Future[Connected | EventHubError]") -> None:
        if not call.cancelled() and call.exception() is None:
            found = call.result()
            if not isinstance(found, EventHubError):
                self._release(found[0])

    async def _attach(self, requests: Sequence[_SessionRequest]) -> list[Connected | EventHubError]:
        """Attach each connection, or tell why not. Raises DatabaseUnavailable: then none is."""
        subscribed: dict[_SessionRequest, ConnectedSession] = {}
        results: dict[_SessionRequest, Connected | EventHubError] = {}
        try:
            async with reading(self._pool) as connection:
                found = await find_sessions(connection, [request.key for request in requests])
                for request in requests:
                    try:
                        settings = required_consumer(found.get(request.key))
                    except EventHubError as error:
                        results[request] = error
                        continue
                    session = ConnectedSession.new(settings, request.waker, request.transport)
                    self._connected.subscribe(session)
                    subscribed[request] = session
                pairs = {one.settings.id: one.attachment for one in subscribed.values()}
                attached = await attach(connection, pairs, _this_process())
        except BaseException:
            for session in subscribed.values():
                self._connected.unsubscribe(session)
            raise
        for request, session in subscribed.items():
            results[request] = self._connect(session, attached.get(session.settings.id))
        return [results[request] for request in requests]

    def _connect(
        self, session: ConnectedSession, attached: Attached | None
    ) -> Connected | EventHubError:
        """Connect a session, or tell why not: it was deleted meanwhile, or has too many streams."""
        if attached is None or len(attached.positions) > limits.SESSION_STREAMS_MAX:
            self._connected.unsubscribe(session)
            return UnknownSession(field="session") if attached is None else _too_many_streams()
        session.acknowledgements = attached.acknowledgements
        self._connected.add(session)
        return session, attached.positions


def _this_process() -> str:
    """Return what the session shows of where it is connected. A process may have been forked."""
    return f"{socket.gethostname()} {os.getpid()}"


def required_consumer(settings: SessionSettings | None) -> SessionSettings:
    """Return the settings. Raises UnknownSession, WrongSessionKind or SessionDisconnected unless
    events may be delivered to the session.
    """
    settings = required(settings)
    if settings.disconnected:
        raise SessionDisconnected(field="session")
    return settings


def bounded(found: list[SessionPosition]) -> list[SessionPosition]:
    """Raise LimitReached if a session has more streams than a connection serves."""
    if len(found) > limits.SESSION_STREAMS_MAX:
        raise _too_many_streams()
    return found


def _too_many_streams() -> LimitReached:
    return LimitReached(
        "The session has registrations on too many streams; delete some of them.",
        limit=limits.SESSION_STREAMS_MAX,
    )
