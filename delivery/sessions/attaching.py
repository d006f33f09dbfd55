"""Attaches connections to sessions, many at once: thousands come back together after a restart.
SQL module.
"""

import asyncio
import os
import socket
from collections.abc import Callable, Sequence
from typing import NamedTuple
from uuid import uuid4
from weakref import WeakValueDictionary

from psycopg_pool import AsyncConnectionPool

from delivery.sessions.attachments import (
    Attached,
    Attachment,
    SessionPosition,
    SessionSettings,
    attach,
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
from registrations.feed import CatalogChange

Connected = tuple[ConnectedSession, list[SessionPosition]]


class _SessionRequest(NamedTuple):
    """A connection that asks for the session of a client."""

    attachment: Attachment
    waker: Waker
    transport: str


class SessionAttacher:
    """Attaches the connections of one process. `release` is given sessions whose connections were
    cancelled meanwhile, `replace` those that a connection of another process may serve.
    """

    def __init__(
        self,
        pool: AsyncConnectionPool[Connection],
        connected: ConnectedSessions,
        release: Callable[[ConnectedSession], None],
        replace: Callable[[int], None],
    ) -> None:
        self._pool = pool
        self._replace = replace
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
        attachment = Attachment(principal.client_id, name, uuid4())
        request = _SessionRequest(attachment, waker, transport)
        async with self._locks.setdefault(attachment.session, asyncio.Lock()):
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
        attachments = [request.attachment for request in requests]
        with self._connected.changes() as changes:
            async with reading(self._pool) as connection:
                found = await attach(connection, attachments, _this_process())
            return [
                self._connect(one, found.get(one.attachment.session), changes) for one in requests
            ]

    def _connect(
        self,
        request: _SessionRequest,
        found: Attached | None,
        changes: Sequence[CatalogChange | None],
    ) -> Connected | EventHubError:
        """Connect the session that was found, or tell why not."""
        try:
            if found is None:
                raise UnknownSession(field="session")
            required_consumer(found.settings)
            positions = bounded(found.positions)
        except EventHubError as error:
            return error
        attachment, waker, transport = request
        session = ConnectedSession.attached(found, attachment.id, waker, transport)
        self._connected.add(session, changes)
        if found.replaces:
            self._replace(session.settings.id)
        return session, positions


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
