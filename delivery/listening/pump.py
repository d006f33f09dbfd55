"""The pump of one websocket: one task moves events from the log to the socket and serves its
listeners and sessions in rounds. Plain module.

The outbox is the socket's own buffer: the next frame is built when the last one was taken. So a
slow reader costs one buffer and delays no other; one that takes nothing for too long is
disconnected with a message to resume (reader_monitor.py).
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any, NamedTuple

from delivery.listening import messages
from delivery.listening.frames import Frame, FrameFormat, FrameSubject
from delivery.listening.interest_watch import InterestWatches
from delivery.listening.listener import StreamListener
from delivery.listening.protocol import (
    ListenerFilter,
    ListenerState,
    SocketListeners,
    hello,
    refusal,
)
from delivery.listening.reader import Reader
from delivery.listening.resend import Resending, requested_ranges
from delivery.listening.services import ListenerServices
from delivery.listening.socket_emits import SocketEmits
from delivery.sessions.socket_sessions import SessionServices, SocketSessions
from eventhub.access.principal import Principal
from eventhub.base import limits, metrics
from eventhub.base.errors import DatabaseUnavailable, EventHubError

SendFrames = Callable[[list[Frame]], Awaitable[None]]


class SocketWriter(NamedTuple):
    """The frames' format, and the function that sends them."""

    form: FrameFormat[Frame]
    send: SendFrames


class SocketServices(NamedTuple):
    """The services of a process that its sockets use."""

    listening: ListenerServices
    sessions: SessionServices
    emits: SocketEmits


class SocketPump(Reader):
    """The listeners and sessions of one socket.

    `run` is one task; `handle` is called by the socket's reader for each message.
    """

    def __init__(
        self,
        services: SocketServices,
        writer: SocketWriter,
        credential: str,
        principal: Principal,
    ) -> None:
        listening = services.listening
        super().__init__(listening.authorizer, listening.clock, credential, principal)
        self._services = listening
        self._emits = services.emits
        self.form: FrameFormat[Frame] = writer.form
        self._send_frames = writer.send
        self.socket = SocketListeners()
        self._pings = 0
        self._listeners: dict[FrameSubject, StreamListener] = {}  # of sessions, too
        self._sessions = SocketSessions(listening, services.sessions, self)
        self._watches = InterestWatches(
            listening.authorizer, listening.closures, self._send_message
        )

    async def run(self) -> None:
        """Serve until cancelled. Raises Unauthenticated when the credential is no longer valid."""
        await self._send_message(hello(client=self.principal.client, zone=self.principal.zone))
        self._authorizer.wakers.add(self.waker)
        try:
            while True:
                self.waker.clear()
                if not await self._may_send():
                    await self.waker.wait()
                    continue
                if not await self._serve_all():
                    await self.waker.wait()
        finally:
            self._authorizer.wakers.discard(self.waker)

    async def close(self) -> None:
        """End all listeners, sessions and watches."""
        await self._watches.close()
        await self._sessions.close()
        for listener in list(self._listeners.values()):
            await self.end(listener, self.end_reason)

    async def handle(self, text: str | bytes) -> None:
        """Handle one message of the client. Errors are answered, and the socket stays open."""
        subject: dict[str, str] = {}
        try:
            message = messages.parse_message(text)
            subject = messages.subject_of(message)
            await self._handle(message)
        except EventHubError as error:
            await self._send_message({**refusal(error), **subject})

    async def _handle(self, message: messages.Incoming) -> None:
        match message:
            case messages.ListenMessage():
                await self._start(message)
            case messages.Stop():
                await self._stop(message.listener)
            case messages.Ack():
                self._acknowledge(message)
            case messages.ResendMessage():
                await self._resend(message)
            case messages.EmitMessage():
                await self._send_message(await self._emits.emit(self.principal, message))
            case messages.Ping():
                await self._send_message({"op": "pong", "id": message.id})
            case messages.Connect() | messages.Disconnect() | messages.Credit():
                await self._sessions.handle(message)
            case messages.InterestMessage() | messages.Confirm() | messages.Forget():
                await self._watches.handle(self.principal, message)

    def _acknowledge(self, message: messages.Ack) -> None:
        message.require_complete()
        if message.session is not None:
            self._sessions.acknowledge(message)
        elif message.listener is not None and message.sequence is not None:
            self.socket.find(message.listener).acknowledge(message.sequence)
        self.waker.set()

    async def _start(self, message: messages.ListenMessage) -> None:
        self.socket.require_new(message.listener)
        request = messages.request_of(message)
        state = ListenerState(message.listener, message.stream, ListenerFilter(), message.window)
        state.registrations = request.registrations
        listener = await StreamListener.open(self._services, self.principal, request, state)
        try:
            self.socket.require_affordable(state.filter)
            notices = listener.notices(self.form)
            await self.send([*notices, self.form.message(listener.mark_started())])
        except BaseException:
            await listener.close()
            raise
        self.socket.listeners[message.listener] = state
        self.add(listener)
        self.waker.set()

    async def _resend(self, message: messages.ResendMessage) -> None:
        """Send events again, then a message with their number and the ranges that are missing."""
        state = self.socket.find(message.listener)
        ranges = requested_ranges(message, state.last_reported)
        listener = self._listeners[state.subject]
        principal = await self._authorizer.authenticate(self._credential)
        await listener.authenticate(principal)
        resending = Resending(self._services, principal, listener)
        events = 0
        missing: list[dict[str, int]] = []
        async with aclosing(resending.run(ranges, self.form)) as parts:
            async for frames, gone in parts:
                if self._listeners.get(state.subject) is not listener:
                    return  # stopped meanwhile
                events += len(frames)
                if gone is not None:
                    missing.append(gone._asdict())
                if frames:
                    metrics.SENT.add(len(frames), sum(map(len, frames)))
                    await self.send([*frames])
        metrics.RESENT.inc(events)
        answer = {"op": "resent", "listener": message.listener, "events": events}
        await self._send_message({**answer, "missing": missing})

    async def _stop(self, name: str) -> None:
        listener = self._listeners[self.socket.find(name).subject]
        cursor = listener.cursor
        await self.end(listener, "stopped")
        await self._send_message({"op": "stopped", "listener": name, "cursor": cursor._asdict()})

    def add(self, listener: StreamListener) -> None:
        """Serve a listener from now on."""
        self._listeners[listener.state.subject] = listener
        listener.watch(self.waker)

    async def end(self, listener: StreamListener, reason: str) -> None:
        """End a listener, and serve it no more."""
        self._listeners.pop(listener.state.subject, None)
        listener.end_reason = reason
        self.socket.listeners.pop(listener.state.name, None)
        listener.unwatch()
        for other in self._listeners.values():
            other.watch(self.waker)  # it may be on the same stream
        await listener.close()

    async def _may_send(self) -> bool:
        """Return False while authorisation cannot be confirmed: the socket stays open, reports that
        state, and sends no event.
        """
        if not self.waiting and self.known():
            return True
        waited, before = self.waiting, self.principal
        may = await self.confirmed()
        if self.waiting and not waited:
            problem = DatabaseUnavailable().problem()
            await self._send_message({"op": "status", "state": "waiting", **problem})
        elif waited and may:
            await self._send_message({"op": "status", "state": "resumed"})
        if self.principal != before:
            self._sessions.start_refused()
        if self.principal is not before:
            await self._recheck()
        return may

    async def _recheck(self) -> None:
        """End the listeners and watches that the principal may no longer have."""
        await self._watches.recheck(self.principal)
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
            await self._send_message(refusal(error, subject))

    async def _serve_all(self) -> bool:
        """Serve each listener once; return False if there was nothing to do."""
        busy = False
        for listener in list(self._listeners.values()):
            try:
                if await self._serve(listener):
                    busy = True
                    if listener.is_expensive:
                        await asyncio.sleep(0)  # let others run: the next one may take as long
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

    async def _ping(self) -> None:
        """Send the position of each listener, so that the cursor of a filtered one advances."""
        positions = {}
        for name, listener in self._named():
            position = listener.state.position(listener.cursor)
            if position is not None:
                positions[name] = position
        await self._send_message({"op": "ping", "positions": positions})

    def resume_message(self) -> Frame:
        cursors = {name: one.cursor._asdict() for name, one in self._named()}
        return self.form.message({"op": "resume", "reason": "slow_reader", "sent": cursors})

    def _named(self) -> list[tuple[str, StreamListener]]:
        """Return the listeners by name; those of sessions have none."""
        return [(one.listener, it) for one, it in self._listeners.items() if one.listener]

    async def _send_message(self, fields: dict[str, Any]) -> None:
        await self.send([self.form.message(fields)])

    async def send(self, frames: list[Frame]) -> None:
        """Send frames, and wait until the socket has taken them."""
        self.sending = True
        try:
            await self._send_frames(frames)
        finally:
            self.sending = False
        self.frames_taken += len(frames)
