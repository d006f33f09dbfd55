"""Moves events from the log to one socket: one task that serves all its listens in turn. Plain.

The outbox is the socket's own buffer: the next frame is made when the last one was taken. So a slow
reader costs one buffer and delays nobody; when it takes nothing for too long it is told to resume
(keeper.py).
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, NamedTuple

from delivery.sessions import messages
from delivery.sessions.frames import Frame, Frames
from delivery.sessions.interest import Interest, require_own
from delivery.sessions.protocol import Filter, Listen, Session, hello, refusal
from eventhub import limits, metrics
from eventhub.access.gate import Gate
from eventhub.access.principal import Principal
from eventhub.clock import Clock
from eventhub.errors import DatabaseUnavailable, EventHubError, UnknownChannel
from eventhub.event.envelope import ALL_MASK
from eventhub.eventlog.log import Follower, Log
from eventhub.eventlog.stored import Stored
from registrations.feed import Feed

SendFrames = Callable[[list[Frame]], Awaitable[None]]


class Parts(NamedTuple):
    """What a pump needs of its process and its socket."""

    log: Log
    gate: Gate
    feed: Feed
    clock: Clock
    frames: Frames
    send: SendFrames


class _Running(NamedTuple):
    listen: Listen
    follower: Follower
    interest: Interest | None  # of a listen that names registrations
    until_stopped: AsyncExitStack


class Pump:
    """One socket's listens.

    `run` is one task; `handle` is called by the socket's reader for each message.
    """

    def __init__(self, parts: Parts, credential: str, principal: Principal) -> None:
        self._log, self._gate, self._feed, self._clock, self._frames, self._send_frames = parts
        self._credential = credential
        self.principal = principal
        self.session = Session()
        self.waker = asyncio.Event()
        self.sending = False  # a frame waits until the socket takes it
        self.frames_taken = 0
        self.pings_due = 0  # raised by the keeper
        self._pings = 0
        self._running: dict[str, _Running] = {}
        self._changes = self._gate.changes
        self.waiting = False

    async def run(self) -> None:
        """Serve until cancelled; raises Unauthenticated when the credential is no longer valid."""
        await self._say(hello(client=self.principal.client, zone=self.principal.zone))
        self._gate.wakers.add(self.waker)
        try:
            while True:
                self.waker.clear()
                if not await self._may_send():
                    await self.waker.wait()
                    continue
                if not await self._turn():
                    await self.waker.wait()
        finally:
            self._gate.wakers.discard(self.waker)

    async def close(self) -> None:
        """End all listens."""
        for name in list(self._running):
            await self._end(name)

    async def handle(self, text: str | bytes) -> None:
        """One message from the client; what is wrong with it is answered, and the socket stays."""
        listen = None
        try:
            message = messages.parse_message(text)
            listen = getattr(message, "listen", None)
            if isinstance(message, messages.ListenIn):
                await self._begin(message)
            elif isinstance(message, messages.Stop):
                await self._stop(message.listen)
            elif isinstance(message, messages.Ack):
                self.session.find(message.listen).acked(message.sequence)
                self.waker.set()
            elif isinstance(message, messages.Ping):
                await self._say({"op": "pong", "id": message.id})
        except EventHubError as error:
            await self._say(refusal(error, listen))

    async def _begin(self, message: messages.ListenIn) -> None:
        self.session.may_add(message.listen)
        start, wanted = messages.start_of(message), await self._filter(message)
        self.principal.require_listen(message.stream)
        stream_id = await self._gate.stream_id(self.principal, message.stream)
        listen = Listen(message.listen, message.stream, wanted, message.window)
        async with AsyncExitStack() as stack:
            interest = None
            if message.registrations is not None:
                interest = await stack.enter_async_context(
                    self._interest(message.registrations, stream_id)
                )
            follower = await stack.enter_async_context(self._log.follow(stream_id, start))
            began = listen.began(follower.position)
            await self._say(began)
            follower.ring.wakers.add(self.waker)
            self._running[message.listen] = _Running(listen, follower, interest, stack.pop_all())
        self.session.listens[message.listen] = listen
        metrics.LISTENS.inc()
        self.waker.set()

    @asynccontextmanager
    async def _interest(self, ids: list[int], stream_id: int) -> AsyncIterator[Interest]:
        await require_own(self._log, self.principal, ids, stream_id)
        async with Interest.open(self._log, self._feed, ids, stream_id) as interest:
            yield interest

    async def _filter(self, message: messages.ListenIn) -> Filter:
        mask = messages.mask_of(message)
        if isinstance(mask, list):
            try:
                mask = await self._gate.mask(self.principal.zone_id, mask)
            except UnknownChannel as error:
                error.field = "mask"
                raise
        zone = self.principal.zone if message.stream == "system" else None
        return Filter(
            mask=ALL_MASK if mask is None else mask, pairs=messages.pairs_of(message), zone=zone
        )

    async def _stop(self, name: str) -> None:
        self.session.find(name)
        cursor = self._running[name].follower.cursor
        await self._end(name)
        await self._say({"op": "stopped", "listen": name, "cursor": cursor._asdict()})

    async def _end(self, name: str) -> None:
        running = self._running.pop(name)
        del self.session.listens[name]
        metrics.LISTENS.dec()
        ring = running.follower.ring
        if all(other.follower.ring is not ring for other in self._running.values()):
            ring.wakers.discard(self.waker)  # no other listen of this socket is on that stream
        await running.until_stopped.aclose()

    async def _may_send(self) -> bool:
        """False while authorisation cannot be confirmed: the socket stays, says why, and sends no
        event.
        """
        if not self._gate.fresh():
            await asyncio.sleep(0)  # what woke us may have woken the gate too: its turn first
        if not self._gate.fresh():
            if not self.waiting:
                self.waiting = True
                await self._say(
                    {"op": "status", "state": "waiting", **DatabaseUnavailable().problem()}
                )
            return False
        if (self._changes != self._gate.changes or self.expired()) and not await self._confirmed():
            return False  # the keeper wakes us to ask again
        if self.waiting:
            self.waiting = False
            await self._say({"op": "status", "state": "resumed"})
        return True

    def expired(self) -> bool:
        """True when the credential's time is over."""
        expires_at_us = self.principal.expires_at_us
        return expires_at_us is not None and expires_at_us <= self._clock.now_us()

    async def _confirmed(self) -> bool:
        """A key changed, or the token ended: ask again; False while nobody can be asked.

        Raises Unauthenticated when this one is no longer valid.
        """
        changes = self._gate.changes
        try:
            self.principal = await self._gate.authorise(self._credential)
        except DatabaseUnavailable:
            self.waiting = True
            return False
        self._changes = changes
        for running in list(self._running.values()):
            try:
                self.principal.require_listen(running.listen.stream)
            except EventHubError as error:
                await self._refuse(running, error)
        return True

    async def _refuse(self, running: _Running, error: EventHubError) -> None:
        """End a listen with its error, unless its reader has stopped it meanwhile."""
        name = running.listen.name
        if self._running.get(name) is running:
            await self._end(name)
            await self._say(refusal(error, name))

    async def _turn(self) -> bool:
        """One turn for each listen; False when there was nothing to do."""
        busy = False
        for running in list(self._running.values()):
            try:
                busy |= await self._serve(running)
            except DatabaseUnavailable:
                await asyncio.sleep(limits.HEAD_POLL_INTERVAL_S)
                busy = True
            except EventHubError as error:
                await self._refuse(running, error)
        if self._pings != self.pings_due:
            self._pings = self.pings_due
            await self._ping()
        if busy:
            await asyncio.sleep(0)  # others' turn
        return busy

    async def _serve(self, running: _Running) -> bool:
        """Send what one listen is owed, in one write; the next turn looks at the grants first."""
        listen, follower, interest, _ = running
        if listen.full:
            return False
        ready = follower.ready(limits.FRAMES_PER_TURN_MAX)
        batch = await follower.catch_up() if ready is None else ready
        if batch and interest is not None:
            await interest.catch_up(follower.cursor.sequence)
        if (ready is None or interest is not None) and self._superseded(running):
            return True
        frames = self._frames_of(running, batch)
        if frames:
            metrics.SENT.add(len(frames), sum(map(len, frames)))
            await self._send(frames)
        return bool(batch)

    def _superseded(self, running: _Running) -> bool:
        """True if the listen was stopped, or grants changed, while something was awaited."""
        gone = self._running.get(running.listen.name) is not running
        return gone or self._changes != self._gate.changes

    def _frames_of(self, running: _Running, batch: list[Stored]) -> list[Frame]:
        """The frames of what the listen wants of a batch, as far as a turn may go."""
        listen, follower, interest, _ = running
        now_us = self._clock.now_us()
        frames: list[Frame] = []
        size = 0
        for stored in batch[: limits.FRAMES_PER_TURN_MAX]:
            if listen.full or size > limits.TURN_BYTES_MAX:
                break
            follower.took(stored)
            if not listen.filter.wants(stored, now_us):
                continue
            named = () if interest is None else interest.matching(stored)
            if interest is None or named:
                frame = listen.event(stored, self._frames, named)
                frames.append(frame)
                size += len(frame)
        return frames

    async def _ping(self) -> None:
        """Tell where each listen stands, so that a filtered reader's cursor moves on too."""
        positions = {}
        for name, running in self._running.items():
            position = running.listen.position(running.follower.cursor)
            if position is not None:
                positions[name] = position
        await self._say({"op": "ping", "positions": positions})

    def resume_message(self) -> Frame:
        """What a reader that takes nothing is told before its socket is closed."""
        cursors = {name: r.follower.cursor._asdict() for name, r in self._running.items()}
        return self._frames.message({"op": "resume", "reason": "slow_reader", "sent": cursors})

    async def _say(self, fields: dict[str, Any]) -> None:
        await self._send([self._frames.message(fields)])

    async def _send(self, frames: list[Frame]) -> None:
        self.sending = True
        await self._send_frames(frames)
        self.sending = False
        self.frames_taken += len(frames)
