"""A reader with listeners and sessions, which are served in rounds: a websocket (pump.py), and the
server-sent events of a session (delivery/sessions/event_reader.py). Plain module.
"""

import asyncio
from abc import abstractmethod
from typing import Any

from delivery.listening.frames import Frame, FrameFormat, FrameSubject
from delivery.listening.listener import StreamListener
from delivery.listening.protocol import refusal
from delivery.listening.reader import Reader
from delivery.listening.services import ListenerServices
from delivery.sessions.socket_sessions import SocketSessions
from eventhub.access.principal import Principal
from eventhub.base import limits, metrics
from eventhub.base.errors import DatabaseUnavailable, EventHubError


class RoundReader(Reader):
    """The listeners of one connection, those of its sessions included."""

    transport = "websocket"
    _sessions: SocketSessions

    def __init__(
        self,
        services: ListenerServices,
        form: FrameFormat[Frame],
        credential: str,
        principal: Principal,
    ) -> None:
        super().__init__(services.authorizer, services.clock, credential, principal)
        self._services = services
        self.form = form
        self._pings = 0
        self._listeners: dict[FrameSubject, StreamListener] = {}  # of sessions, too

    @abstractmethod
    async def send(self, frames: list[Frame]) -> None:
        """Send frames."""

    @abstractmethod
    async def _ping(self) -> None:
        """Send a keep-alive."""

    async def send_message(self, fields: dict[str, Any]) -> None:
        """Send a message."""
        await self.send([self.form.message(fields)])

    async def close(self) -> None:
        """End all sessions and listeners."""
        await self._sessions.close()
        for listener in list(self._listeners.values()):
            await self.end(listener, self.end_reason)

    def add(self, listener: StreamListener) -> None:
        """Serve a listener from now on."""
        self._listeners[listener.state.subject] = listener
        listener.watch(self.waker)

    async def end(self, listener: StreamListener, reason: str) -> None:
        """End a listener, and serve it no more."""
        self._listeners.pop(listener.state.subject, None)
        listener.end_reason = reason
        listener.unwatch()
        for other in self._listeners.values():
            other.watch(self.waker)  # it may be on the same stream
        await listener.close()

    async def serve(self) -> bool:
        """Serve each listener and session once; return False if there was nothing to do, or while
        authorisation cannot be confirmed: the waker is set when there may be something.

        Raises Unauthenticated when the credential is no longer valid.
        """
        return await self._may_send() and await self._serve_all()

    async def _may_send(self) -> bool:
        """Return False while authorisation cannot be confirmed: the connection stays open, reports
        that state, and gets no event.
        """
        if not self.waiting and self.known():
            return True
        waited, before = self.waiting, self.principal
        may = await self.confirmed()
        if self.waiting and not waited:
            problem = DatabaseUnavailable().problem()
            await self.send_message({"op": "status", "state": "waiting", **problem})
        elif waited and may:
            await self.send_message({"op": "status", "state": "resumed"})
        if self.principal != before:
            self._sessions.start_refused()
        if self.principal is not before:
            await self._recheck()
        return may

    async def _recheck(self) -> None:
        """End the listeners that the principal may no longer have."""
        for listener in list(self._listeners.values()):
            try:
                await listener.authenticate(self.principal)
            except EventHubError as error:
                await self._refuse(listener, error)

    async def _refuse(self, listener: StreamListener, error: EventHubError) -> None:
        """End a listener with an error, unless the client stopped it meanwhile."""
        subject = listener.state.subject
        if self._listeners.get(subject) is listener:
            await self.end(listener, error.code)
            await self.send_message(refusal(error, subject))

    async def _serve_all(self) -> bool:
        busy = expensive = False
        for listener in list(self._listeners.values()):
            if expensive:
                await asyncio.sleep(0)  # let others run: the next one may take as long
            expensive = False
            try:
                if await self._serve(listener):
                    busy, expensive = True, listener.is_expensive
            except DatabaseUnavailable:
                await asyncio.sleep(limits.HEAD_POLL_INTERVAL_S)
                busy = True
            except EventHubError as error:
                await self._refuse(listener, error)
        if await self._serve_sessions():
            busy = True
        if self._pings != self.pings_due:
            self._pings = self.pings_due
            await self._ping()
        if busy:
            await asyncio.sleep(0)  # let others run
        return busy

    async def _serve_sessions(self) -> bool:
        """Serve each session once; return False if there was nothing to do."""
        try:
            return await self._sessions.serve()
        except DatabaseUnavailable:
            await asyncio.sleep(limits.HEAD_POLL_INTERVAL_S)
            return True

    async def _serve(self, listener: StreamListener) -> bool:
        """Send the pending frames of one listener in one write; return False if there are none. The
        next round checks the grants first.
        """
        if listener.state.full or not listener.due():
            return False
        if not await listener.fill():
            return False
        if self._listeners.get(listener.state.subject) is not listener or self.changed():
            return True  # stopped, or grants changed, during an await
        frames = listener.next_frames(self.form)
        if frames:
            metrics.SENT.add(len(frames), sum(map(len, frames)))
            await self.send(frames)
        return True
