"""A member of a session group that shares, while a connection serves it: it claims events while it
has room, has them until they are acknowledged, and gives them back at the end. Plain module.

The claims end some seconds after its process has. Concurrency contract: one event loop.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from time import monotonic
from typing import Any, NamedTuple

from delivery.listening.batch import DEFAULT_LIMITS, BatchLimits
from delivery.listening.frames import FrameFormat, T
from delivery.sessions import claims
from delivery.sessions.claims import AcknowledgedClaims, ExtendedClaims
from delivery.sessions.connected import CHANGED, ConnectedSession
from delivery.sessions.errors import SessionDisconnected, SessionNotConnected, SessionReplaced
from delivery.sessions.pull_sources import Pulling, PullSources
from delivery.sessions.pulled_events import PulledEvent
from eventhub.access.principal import Principal
from eventhub.access.sessions import UnknownSession
from eventhub.base import limits
from eventhub.base.errors import DatabaseUnavailable
from eventhub.base.event_loop import wait_until_set
from eventhub.postgresql.connections import reading


class _Ack(NamedTuple):
    """Acknowledged events of a stream, and the answer to send when that is stored."""

    given: AcknowledgedClaims
    answer: dict[str, Any] | None


class SharedMember:
    """A member of one connection. Call `start`, and `close` at the end."""

    def __init__(self, sources: PullSources, pulling: Pulling, session: ConnectedSession) -> None:
        self.session = session
        self.window: int | None = None  # of this connection, instead of the group's
        self._sources = sources
        self._source, self._holder = pulling.source, pulling.holder
        self._pulling = pulling
        self._ready: deque[PulledEvent] = deque()
        self._acks: list[_Ack] = []
        self._given_back: list[ExtendedClaims] = []
        self._principal: Principal | None = None
        self._waker = asyncio.Event()
        self._retain_s = 0.0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Claim events from now on."""
        self._source.waker.waiting.add(self._waker)
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Store what was acknowledged, and give the rest back, unless another connection or a pull
        serves the session now.
        """
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._source.waker.waiting.discard(self._waker)
        with suppress(DatabaseUnavailable, SessionReplaced):
            await self._flush()
            async with (
                reading(self._sources.services.pool) as connection,
                claims.changing(connection, self._holder),
            ):
                await claims.give_back(connection, self._holder)
        self._source.waker.set()
        await self._sources.leave(self._pulling)

    def wake(self) -> None:
        """Note that others have acknowledged what it has: there may be room for more."""
        self._waker.set()

    def set_window(self, events: int) -> None:
        """Set how many events it may have."""
        self.window = events
        self._waker.set()

    def acknowledge(
        self, stream: str, found: tuple[int | None, Sequence[int]], answer: dict[str, Any] | None
    ) -> None:
        """Acknowledge the events up to a sequence that it has, and single ones; send the answer
        when that is stored. Raises SessionNotConnected if the group does not read the stream.
        """
        through, sequences = found
        stream_id = self._stream_id(stream)
        self._acks.append(_Ack(AcknowledgedClaims(stream_id, through, sequences), answer))
        self._waker.set()

    def give_back(self, stream: str, sequences: Sequence[int]) -> None:
        """Give back events that it has, so that they are delivered again at once, to any member.
        Raises SessionNotConnected if the group does not read the stream.
        """
        self._given_back.append(ExtendedClaims(self._stream_id(stream), sequences, 0.0))
        self._waker.set()

    def _stream_id(self, stream: str) -> int:
        reader = self._source.session.readers.get(stream)
        if reader is None:
            raise SessionNotConnected(field="stream")
        return int(reader.info.id)

    def authenticate(self, principal: Principal) -> None:
        """Note the present rights of the connection."""
        if principal is not self._principal:
            self._principal = principal
            self._waker.set()

    def next_frames(self, form: FrameFormat[T], size: BatchLimits = DEFAULT_LIMITS) -> list[T]:
        """Return the frames of events that it has claimed."""
        frames: list[T] = []
        written = 0
        services = self._sources.services.listening
        while self._ready and len(frames) < size.events_max and written <= size.bytes_max:
            event = self._ready.popleft()
            if event.reader.info.name in self._source.refused:
                continue  # the rights were lost: another member gets it
            frames.append(event.frame(services, form, self.session.name))
            written += len(event.stored.payload)
        return frames

    async def _run(self) -> None:
        """Claim events until the session ends."""
        while not self.session.end_reason:
            self._waker.clear()
            try:
                busy = await self._step()
            except DatabaseUnavailable:
                await asyncio.sleep(limits.HEAD_POLL_INTERVAL_S)
                continue
            except (SessionReplaced, UnknownSession, SessionDisconnected):
                return  # the watch of the process ends the session, and says why
            if self._source.broken:
                self.session.end(CHANGED)
            elif not busy:
                await wait_until_set(self._waker, limits.PULL_CHECK_S)

    async def _step(self) -> bool:
        """Store acknowledgements, retain what it has, and claim more; return whether it did."""
        principal, self._principal = self._principal, None
        if principal is not None:
            await self._source.authenticate(principal)
        await self._flush()
        if monotonic() >= self._retain_s:
            self._retain_s = monotonic() + limits.SHARED_RETAIN_S
            async with reading(self._sources.services.pool) as connection:
                # without the streams on which the rights were lost: other members get their events
                streams = [reader.info.id for reader in self._source.session.readers.values()]
                await claims.retain(connection, self._holder, streams, limits.SHARED_CLAIM_S)
        events = await self._source.take(
            self._holder, limits.PULL_EVENTS_DEFAULT, limits.SHARED_CLAIM_S, self.window
        )
        self._ready.extend(events)
        if self._source.messages:
            self.session.messages += self._source.messages
            self._source.messages = []
        if events or self.session.messages:
            self.session.waker.set()
        return bool(events)

    async def _flush(self) -> None:
        """Store acknowledgements, whose answers are sent then, and give events back."""
        if not self._acks and not self._given_back:
            return
        acks, self._acks = self._acks, []
        given_back, self._given_back = self._given_back, []
        holder = self._holder
        try:
            async with (
                reading(self._sources.services.pool) as connection,
                claims.changing(connection, holder),
            ):
                await claims.change(connection, holder, [ack.given for ack in acks], given_back)
        except BaseException:
            self._acks[:0] = acks
            self._given_back[:0] = given_back
            raise
        self.session.messages += [ack.answer for ack in acks if ack.answer is not None]
        self.session.waker.set()
        self._source.waker.set()
