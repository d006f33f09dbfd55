"""The pump of one websocket: one task moves events from the log to the socket and serves its
listeners in rounds. Plain module.

The outbox is the socket's own buffer: the next frame is built when the last one was taken. So a
slow reader costs one buffer and delays no other; one that takes nothing for too long is
disconnected with a message to resume (reader_monitor.py).
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any, NamedTuple

from delivery.listening import messages
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
from delivery.listening.reader import Reader
from delivery.listening.resend import Resending, requested_ranges
from delivery.listening.services import ListenerServices
from eventhub.access.principal import Principal
from eventhub.base import limits, metrics
from eventhub.base.errors import DatabaseUnavailable, EventHubError

SendFrames = Callable[[list[Frame]], Awaitable[None]]


class SocketWriter(NamedTuple):
    """The frames' format, and the function that sends them."""

    form: FrameFormat[Frame]
    send: SendFrames


class SocketPump(Reader):
    """The listeners of one socket.

    `run` is one task; `handle` is called by the socket's reader for each message.
    """

    def __init__(
        self,
        services: ListenerServices,
        writer: SocketWriter,
        credential: str,
        principal: Principal,
    ) -> None:
        super().__init__(services.authorizer, services.clock, credential, principal)
        self._services = services
        self._form: FrameFormat[Frame] = writer.form
        self._send_frames = writer.send
        self.socket = SocketListeners()
        self._pings = 0
        self._listeners: dict[str, StreamListener] = {}
        self._watches = InterestWatches(services.authorizer, services.closures, self._send_message)

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
        """End all listeners and watches."""
        await self._watches.close()
        for name in list(self._listeners):
            await self._end(name, self.end_reason)

    async def handle(self, text: str | bytes) -> None:
        """Handle one message of the client. Errors are answered, and the socket stays open."""
        subject: dict[str, str] = {}
        try:
            message = messages.parse_message(text)
            subject = messages.subject_of(message)
            if isinstance(message, messages.ListenMessage):
                await self._start(message)
            elif isinstance(message, messages.Stop):
                await self._stop(message.listener)
            elif isinstance(message, messages.Ack):
                self.socket.find(message.listener).acknowledge(message.sequence)
                self.waker.set()
            elif isinstance(message, messages.ResendMessage):
                await self._resend(message)
            elif isinstance(message, messages.Ping):
                await self._send_message({"op": "pong", "id": message.id})
            elif isinstance(message, messages.InterestMessage):
                await self._watches.start(self.principal, message)
            elif isinstance(message, messages.Confirm):
                await self._watches.confirm(message)
            elif isinstance(message, messages.Forget):
                await self._watches.forget(message)
        except EventHubError as error:
            await self._send_message({**refusal(error), **subject})

    async def _start(self, message: messages.ListenMessage) -> None:
        self.socket.require_new(message.listener)
        request = messages.request_of(message)
        state = ListenerState(message.listener, message.stream, ListenerFilter(), message.window)
        state.registrations = request.registrations
        listener = await StreamListener.open(self._services, self.principal, request, state)
        try:
            self.socket.require_affordable(state.filter)
            notices = listener.notices(self._form)
            await self._send([*notices, self._form.message(listener.mark_started())])
        except BaseException:
            await listener.close()
            raise
        self._listeners[message.listener] = listener
        self.socket.listeners[message.listener] = state
        listener.watch(self.waker)
        self.waker.set()

    async def _resend(self, message: messages.ResendMessage) -> None:
        """Send events again, then a message with their number and the ranges that are missing."""
        state = self.socket.find(message.listener)
        ranges = requested_ranges(message, state.last_reported)
        listener = self._listeners[message.listener]
        principal = await self._authorizer.authenticate(self._credential)
        await listener.authenticate(principal)
        resending = Resending(self._services, principal, listener)
        events = 0
        missing: list[dict[str, int]] = []
        async with aclosing(resending.run(ranges, self._form)) as parts:
            async for frames, gone in parts:
                if self._listeners.get(message.listener) is not listener:
                    return  # stopped meanwhile
                events += len(frames)
                if gone is not None:
                    missing.append(gone._asdict())
                if frames:
                    metrics.SENT.add(len(frames), sum(map(len, frames)))
                    await self._send([*frames])
        metrics.RESENT.inc(events)
        answer = {"op": "resent", "listener": message.listener, "events": events}
        await self._send_message({**answer, "missing": missing})

    async def _stop(self, name: str) -> None:
        self.socket.find(name)
        cursor = self._listeners[name].cursor
        await self._end(name, "stopped")
        await self._send_message({"op": "stopped", "listener": name, "cursor": cursor._asdict()})

    async def _end(self, name: str, reason: str) -> None:
        listener = self._listeners.pop(name)
        listener.end_reason = reason
        del self.socket.listeners[name]
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
        name = listener.state.name
        if self._listeners.get(name) is listener:
            await self._end(name, error.code)
            await self._send_message(refusal(error, name))

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
        if self._pings != self.pings_due:
            self._pings = self.pings_due
            await self._ping()
        if busy:
            await asyncio.sleep(0)  # let others run
        return busy

    async def _serve(self, listener: StreamListener) -> bool:
        """Send the pending frames of one listener in one write; return False if there are none. The
        next round checks the grants first.
        """
        if listener.state.full or not listener.due():
            return False
        if not await listener.fill():
            return False
        if self._listeners.get(listener.state.name) is not listener or self.changed():
            return True  # stopped, or grants changed, during an await
        frames = listener.next_frames(self._form)
        if frames:
            metrics.SENT.add(len(frames), sum(map(len, frames)))
            await self._send(frames)
        return True

    async def _ping(self) -> None:
        """Send the position of each listener, so that the cursor of a filtered one advances."""
        positions = {}
        for name, listener in self._listeners.items():
            position = listener.state.position(listener.cursor)
            if position is not None:
                positions[name] = position
        await self._send_message({"op": "ping", "positions": positions})

    def resume_message(self) -> Frame:
        cursors = {name: one.cursor._asdict() for name, one in self._listeners.items()}
        return self._form.message({"op": "resume", "reason": "slow_reader", "sent": cursors})

    async def _send_message(self, fields: dict[str, Any]) -> None:
        await self._send([self._form.message(fields)])

    async def _send(self, frames: list[Frame]) -> None:
        self.sending = True
        try:
            await self._send_frames(frames)
        finally:
            self.sending = False
        self.frames_taken += len(frames)
