"""The pump of one websocket: one task moves events from the log to the socket, and another handles
the messages of the client. Plain module.

The outbox is the socket's own buffer: the next frame is built when the last one was taken. So a
slow reader costs one buffer and delays no other; one that takes nothing for too long is
disconnected with a message to resume (reader_monitor.py).
"""

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import NamedTuple

from delivery.listening import messages
from delivery.listening.fan_out import DirectWriter
from delivery.listening.frames import Frame, FrameFormat
from delivery.listening.interest_watch import InterestWatches
from delivery.listening.listener import StreamListener
from delivery.listening.protocol import (
    ListenerFilter,
    ListenerState,
    SocketListeners,
    hello,
    refusal,
)
from delivery.listening.resend import Resending, requested_ranges
from delivery.listening.round_reader import RoundReader
from delivery.listening.services import ListenerServices
from delivery.listening.socket_emits import SocketEmits
from delivery.sessions.socket_sessions import SessionServices, SocketSessions
from eventhub.access.principal import Principal
from eventhub.base import metrics
from eventhub.base.errors import EventHubError

SendFrames = Callable[[list[Frame]], Awaitable[None]]


class SocketWriter(NamedTuple):
    """The frames' format, the function that sends them, and, if the server has one, the writer of
    prepared frames.
    """

    form: FrameFormat[Frame]
    send: SendFrames
    direct: DirectWriter | None = None


class SocketServices(NamedTuple):
    """The services of a process that its sockets use."""

    listening: ListenerServices
    sessions: SessionServices
    emits: SocketEmits


class SocketPump(RoundReader):
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
        super().__init__(listening, writer.form, credential, principal)
        self._emits = services.emits
        self._send_frames = writer.send
        self.writer = writer.direct
        self.socket = SocketListeners()
        self._sessions = SocketSessions(listening, services.sessions, self)
        self._watches = InterestWatches(listening.authorizer, listening.closures, self)

    async def run(self) -> None:
        """Serve until cancelled. Raises Unauthenticated when the credential is no longer valid."""
        await self.send_message(hello(client=self.principal.client, zone=self.principal.zone))
        self._authorizer.wakers.add(self.waker)
        try:
            while True:
                self.waker.clear()
                if not await self.serve():
                    await self.waker.wait()
        finally:
            self._authorizer.wakers.discard(self.waker)

    async def close(self) -> None:
        """End all listeners, sessions and watches."""
        await self._watches.close()
        await super().close()

    async def handle(self, text: str | bytes) -> None:
        """Handle one message of the client. Errors are answered, and the socket stays open."""
        subject: dict[str, str] = {}
        try:
            message = messages.parse_message(text)
            subject = messages.subject_of(message)
            if not isinstance(message, messages.Connect):
                await self._sessions.connects_done()
            await self._handle(message)
        except EventHubError as error:
            await self.send_message({**refusal(error), **subject})

    def take(self, text: bytes) -> bool:
        """Handle an acknowledgement, which needs no wait; return False for any other message, and
        for one that is refused: `handle` answers these.
        """
        try:
            message = messages.parse_message(text)
            if not isinstance(message, messages.Ack):
                return False
            self._acknowledge(message)
        except EventHubError:
            return False
        return True

    async def _handle(self, message: messages.Incoming) -> None:
        match message:
            case messages.ListenMessage():
                await self._start(message)
            case messages.Stop():
                await self._stop(message.listener)
            case messages.Ack():
                self._acknowledge(message)
            case messages.Nak():
                self._sessions.redeliver(message)
            case messages.ResendMessage():
                await self._resend(message)
            case messages.EmitMessage():
                await self.send_message(await self._emits.emit(self.principal, message))
            case messages.Ping():
                await self.send_message({"op": "pong", "id": message.id})
            case messages.Connect() | messages.Disconnect() | messages.Credit():
                await self._sessions.handle(message)
            case messages.InterestMessage() | messages.Confirm() | messages.Forget():
                await self._watches.handle(self.principal, message)

    def _acknowledge(self, message: messages.Ack) -> None:
        message.require_complete()
        if message.session is not None:
            self._sessions.acknowledge(message)
        elif message.listener is not None and message.sequence is not None:
            state = self.socket.find(message.listener)
            state.acknowledge(message.sequence)
            listener = self._listeners[state.subject]
            if not listener.at_head:
                self._ready[listener] = None  # its window may have been full
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
        await self.send_message({**answer, "missing": missing})

    async def _stop(self, name: str) -> None:
        listener = self._listeners[self.socket.find(name).subject]
        cursor = listener.cursor
        await self.end(listener, "stopped")
        await self.send_message({"op": "stopped", "listener": name, "cursor": cursor._asdict()})

    async def end(self, listener: StreamListener, reason: str) -> None:
        """End a listener, and serve it no more."""
        self.socket.listeners.pop(listener.state.name, None)
        await super().end(listener, reason)

    async def _recheck(self) -> None:
        """End the listeners and watches that the principal may no longer have."""
        await self._watches.recheck(self.principal)
        await super()._recheck()

    async def _ping(self) -> None:
        """Send the position of each listener, so that the cursor of a filtered one advances."""
        positions = {}
        for name, listener in self._named():
            position = listener.state.position(listener.cursor)
            if position is not None:
                positions[name] = position
        await self.send_message({"op": "ping", "positions": positions})

    def resume_message(self) -> Frame:
        cursors = {name: one.cursor._asdict() for name, one in self._named()}
        return self.form.message({"op": "resume", "reason": "slow_reader", "sent": cursors})

    def _named(self) -> list[tuple[str, StreamListener]]:
        """Return the listeners by name; those of sessions have none."""
        return [(one.listener, it) for one, it in self._listeners.items() if one.listener]

    async def send(self, frames: list[Frame]) -> None:
        """Send frames, and wait until the socket has taken them."""
        self.sending = True
        try:
            await self._send_frames(frames)
        finally:
            self.sending = False
        self.frames_taken += len(frames)
