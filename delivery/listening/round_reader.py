"""A reader with listeners and sessions, which are served in rounds: a websocket (pump.py), and the
server-sent events of a session (delivery/sessions/event_reader.py). Plain module.

A round serves the listeners and sessions that are ready: each has a waker of its own, so one event
costs nothing for those of the same connection that it does not concern.
"""

import asyncio
from abc import abstractmethod
from typing import Any

from delivery.listening.fan_out import DirectWriter, HeadReader
from delivery.listening.frames import Frame, FrameFormat, FrameSubject
from delivery.listening.listener import StreamListener
from delivery.listening.protocol import refusal
from delivery.listening.reader import Reader
from delivery.listening.ready import ReadyWaker, take_all
from delivery.listening.services import ListenerServices
from delivery.sessions.socket_sessions import SocketSessions
from eventhub.access.principal import Principal
from eventhub.base import limits, metrics
from eventhub.base.errors import DatabaseUnavailable, EventHubError
from eventhub.base.event_loop import Waker


class RoundReader(Reader):
    """The listeners of one connection, those of its sessions included."""

    transport = "websocket"
    writer: DirectWriter | None = None  # if frames can be written without a task
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
        self._ready: dict[StreamListener, None] = {}  # to serve; those of sessions are not there

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

    def add(self, listener: StreamListener, waker: Waker | None = None) -> None:
        """Serve a listener from now on. `waker`: that of its session, which serves it."""
        self._listeners[listener.state.subject] = listener
        if waker is None:
            waker = ReadyWaker(self._ready, listener, self.waker)
            listener.watch(waker, HeadReader(self, self.form, self.writer))
        else:
            listener.watch(waker)
        waker.set()

    async def end(self, listener: StreamListener, reason: str) -> None:
        """End a listener, and serve it no more."""
        self._listeners.pop(listener.state.subject, None)
        listener.end_reason = reason
        listener.unwatch()
        self._ready.pop(listener, None)
        await listener.close()

    async def serve(self) -> bool:
        """Serve each listener and session that is ready; return False if no other is, or while
        authorisation cannot be confirmed: the waker is set when one may be.

        Raises Unauthenticated when the credential is no longer valid.
        """
        return await self._may_send() and await self._serve_ready()

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
            self._sessions.wake_all()
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
        if self._serves(listener):
            await self.end(listener, error.code)
            await self.send_message(refusal(error, listener.state.subject))

    def _serves(self, listener: StreamListener) -> bool:
        return self._listeners.get(listener.state.subject) is listener

    async def _serve_ready(self) -> bool:
        for listener in take_all(self._ready):
            if await self.serve_listener(listener):
                self._ready[listener] = None
                if listener.is_expensive:
                    await asyncio.sleep(0)  # let others run: the next one may take as long
        await self._sessions.serve()
        if self._pings != self.pings_due:
            self._pings = self.pings_due
            self._sessions.wake_all()
            await self._ping()
        busy = bool(self._ready) or self._sessions.ready
        if busy:
            await asyncio.sleep(0)  # let others run
        return busy

    async def serve_listener(self, listener: StreamListener) -> bool:
        """Send what one listener has; return whether to serve it again in the next round. A refusal
        ends it.
        """
        try:
            return self._serves(listener) and await self._serve(listener)
        except DatabaseUnavailable:
            await asyncio.sleep(limits.HEAD_POLL_INTERVAL_S)
            return True
        except EventHubError as error:
            await self._refuse(listener, error)
            return False

    async def _serve(self, listener: StreamListener) -> bool:
        """Send the pending frames of one listener in one write; return whether there may be more.
        The next round checks the grants first.
        """
        if listener.state.full or not listener.due():
            return False
        if not await listener.fill():
            return False
        if not self._serves(listener) or self.changed():
            return True  # stopped, or grants changed, during an await
        frames = listener.next_frames(self.form)
        if frames:
            metrics.SENT.add(len(frames), sum(map(len, frames)))
            await self.send(frames)
        return listener.may_continue()
