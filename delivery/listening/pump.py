"""Moves events from the log to one socket: one task that serves all its listens in turn.
Plain module.

The outbox is the socket's own buffer: the next frame is made when the last one was taken. So a slow
reader costs one buffer and delays nobody; when it takes nothing for too long it is told to resume
(keeper.py).
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from delivery.listening import messages
from delivery.listening.frames import Form, Frame
from delivery.listening.interest_watch import Watches
from delivery.listening.listener import Listening, Sources
from delivery.listening.protocol import Filter, Listen, Session, hello, refusal
from delivery.listening.reader import Reader
from eventhub.access.principal import Principal
from eventhub.base import limits, metrics
from eventhub.base.errors import DatabaseUnavailable, EventHubError

SendFrames = Callable[[list[Frame]], Awaitable[None]]


class Outlet(NamedTuple):
    """Where frames go, and in which form."""

    form: Form[Frame]
    send: SendFrames


class Pump(Reader):
    """One socket's listens.

    `run` is one task; `handle` is called by the socket's reader for each message.
    """

    def __init__(
        self, sources: Sources, outlet: Outlet, credential: str, principal: Principal
    ) -> None:
        super().__init__(sources.authorizer, sources.clock, credential, principal)
        self._sources = sources
        self._form: Form[Frame] = outlet.form
        self._send_frames = outlet.send
        self.session = Session()
        self._pings = 0
        self._running: dict[str, Listening] = {}
        self._watches = Watches(sources.authorizer, sources.closures, self._say)

    async def run(self) -> None:
        """Serve until cancelled; raises Unauthenticated when the credential is no longer valid."""
        await self._say(hello(client=self.principal.client, zone=self.principal.zone))
        self._authorizer.wakers.add(self.waker)
        try:
            while True:
                self.waker.clear()
                if not await self._may_send():
                    await self.waker.wait()
                    continue
                if not await self._turn():
                    await self.waker.wait()
        finally:
            self._authorizer.wakers.discard(self.waker)

    async def close(self) -> None:
        """End all listens, and what is told of interest."""
        await self._watches.close()
        for name in list(self._running):
            await self._end(name, self.why)

    async def handle(self, text: str | bytes) -> None:
        """One message from the client; what is wrong with it is answered, and the socket stays."""
        named: dict[str, str] = {}
        try:
            message = messages.parse_message(text)
            named = messages.named(message)
            if isinstance(message, messages.ListenIn):
                await self._begin(message)
            elif isinstance(message, messages.Stop):
                await self._stop(message.listener)
            elif isinstance(message, messages.Ack):
                self.session.find(message.listener).acked(message.sequence)
                self.waker.set()
            elif isinstance(message, messages.Ping):
                await self._say({"op": "pong", "id": message.id})
            elif isinstance(message, messages.InterestIn):
                await self._watches.begin(self.principal, message)
            elif isinstance(message, messages.Still):
                await self._watches.still(message)
            elif isinstance(message, messages.Forget):
                await self._watches.forget(message)
        except EventHubError as error:
            await self._say({**refusal(error), **named})

    async def _begin(self, message: messages.ListenIn) -> None:
        self.session.may_add(message.listener)
        wish = messages.wish_of(message)
        listen = Listen(message.listener, message.stream, Filter(), message.window)
        listening = await Listening.open(self._sources, self.principal, wish, listen)
        try:
            self.session.may_hold(listen.filter)
            news = listening.news(self._form)
            await self._send([*news, self._form.message(listening.began())])
        except BaseException:
            await listening.close()
            raise
        self._running[message.listener] = listening
        self.session.listens[message.listener] = listen
        listening.watch(self.waker)
        self.waker.set()

    async def _stop(self, name: str) -> None:
        self.session.find(name)
        cursor = self._running[name].cursor
        await self._end(name, "stopped")
        await self._say({"op": "stopped", "listener": name, "cursor": cursor._asdict()})

    async def _end(self, name: str, why: str) -> None:
        listening = self._running.pop(name)
        listening.why = why
        del self.session.listens[name]
        listening.unwatch()
        for other in self._running.values():
            other.watch(self.waker)  # it may be on the same stream
        await listening.close()

    async def _may_send(self) -> bool:
        """False while authorisation cannot be confirmed: the socket stays, says why, and sends no
        event.
        """
        if not self.waiting and self.known():
            return True
        waited, before = self.waiting, self.principal
        may = await self.confirmed()
        if self.waiting and not waited:
            await self._say({"op": "status", "state": "waiting", **DatabaseUnavailable().problem()})
        elif waited and may:
            await self._say({"op": "status", "state": "resumed"})
        if self.principal is not before:
            await self._end_what_it_may_not()
        return may

    async def _end_what_it_may_not(self) -> None:
        await self._watches.recheck(self.principal)
        for listening in list(self._running.values()):
            try:
                listening.seen_by(self.principal)
            except EventHubError as error:
                await self._refuse(listening, error)

    async def _refuse(self, listening: Listening, error: EventHubError) -> None:
        """End a listen with its error, unless its reader has stopped it meanwhile."""
        name = listening.listen.name
        if self._running.get(name) is listening:
            await self._end(name, error.code)
            await self._say(refusal(error, name))

    async def _turn(self) -> bool:
        """One turn for each listen; False when there was nothing to do."""
        busy = False
        for listening in list(self._running.values()):
            try:
                if await self._serve(listening):
                    busy = True
                    if listening.is_expensive:
                        await asyncio.sleep(0)  # others' turn: the next one may take as long
            except DatabaseUnavailable:
                await asyncio.sleep(limits.HEAD_POLL_INTERVAL_S)
                busy = True
            except EventHubError as error:
                await self._refuse(listening, error)
        if self._pings != self.pings_due:
            self._pings = self.pings_due
            await self._ping()
        if busy:
            await asyncio.sleep(0)  # others' turn
        return busy

    async def _serve(self, listening: Listening) -> bool:
        """Send what one listen is owed, in one write; the next turn looks at the grants first."""
        if listening.listen.full or not listening.due():
            return False
        if not await listening.fill():
            return False
        if self._running.get(listening.listen.name) is not listening or self.changed():
            return True  # stopped, or grants changed, while something was awaited
        frames = listening.tell(self._form)
        if frames:
            metrics.SENT.add(len(frames), sum(map(len, frames)))
            await self._send(frames)
        return True

    async def _ping(self) -> None:
        """Tell where each listen stands, so that a filtered reader's cursor moves on too."""
        positions = {}
        for name, listening in self._running.items():
            position = listening.listen.position(listening.cursor)
            if position is not None:
                positions[name] = position
        await self._say({"op": "ping", "positions": positions})

    def resume_message(self) -> Frame:
        cursors = {name: one.cursor._asdict() for name, one in self._running.items()}
        return self._form.message({"op": "resume", "reason": "slow_reader", "sent": cursors})

    async def _say(self, fields: dict[str, Any]) -> None:
        await self._send([self._form.message(fields)])

    async def _send(self, frames: list[Frame]) -> None:
        self.sending = True
        try:
            await self._send_frames(frames)
        finally:
            self.sending = False
        self.frames_taken += len(frames)
