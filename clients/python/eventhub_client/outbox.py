"""A durable queue of emits: on this machine's disk when `emit` returns, in the hub as soon as it
can be reached, in order, each event once (FOX-49, FOX-51, FOX-84). Plain module.
"""

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import orjson

from eventhub.event.identity import EventId, IdIssuer
from eventhub_client.errors import refusal
from eventhub_client.http import Request, stream_path
from eventhub_client.listening import UNREACHABLE
from eventhub_client.outbox_file import DeadLetter, OutboxError, OutboxFile, Queued
from eventhub_client.profile import Profile, addresses
from eventhub_client.remote import Event, HubClient
from eventhub_client.stream_sender import OutboxContext, OutboxOptions, StreamSender
from eventhub_client.types import HubProblem

__all__ = ["DeadLetter", "Outbox", "OutboxOptions", "OutboxStatus"]

_log = logging.getLogger(__name__)


class OutboxStatus(NamedTuple):
    """How an outbox stands. `held`: streams that wait for somebody to mend what the hub refused."""

    waiting: int
    dead: int
    held: dict[str, HubProblem]
    attached: bool  # the hub answered last time


class Outbox:
    """`async with Outbox("till.outbox", url, key) as outbox: await outbox.emit("orders", event)`.

    One process at a time may have a file (OutboxBusy). Order is kept within a stream. The same
    events are sent again until the hub has said that they are stored; their ids, made when they
    were emitted, let it store each once.
    """

    def __init__(
        self, path: Path | str, url: str, key: str, terms: OutboxOptions | None = None
    ) -> None:
        self._path = Path(path)
        self._hub = HubClient(url, key)
        self._terms = terms or OutboxOptions()
        self._lanes: dict[str, asyncio.Task[None]] = {}
        self._attached: bool | None = None  # None: not tried since the start
        self._desk = OutboxContext(self._send, self._renumbered, self._terms)
        self._file: OutboxFile
        self._issuer: IdIssuer
        self.profile = Profile()

    async def emit(self, stream: str, events: Event | Sequence[Event]) -> list[EventId]:
        """Queue one event or several; on the disk when it returns, whether the hub is there or not.

        Their ids come back. Raises OutboxFull, and ValueError for an event that has an id.
        """
        given = [events] if isinstance(events, dict) else list(events)
        if any("id" in event for event in given):
            raise ValueError("Leave out `id`: the outbox gives each event one of its own.")
        made = [self._complete(event) for event in given]
        await self._desk.disk(self._file.put, stream, [body for _, body in made])
        self._start(stream)
        return [id for id, _ in made]

    async def flush(self, timeout_s: float | None = None) -> OutboxStatus:
        """Until nothing waits, or all that waits is held, or the time is over."""
        try:
            async with asyncio.timeout(timeout_s), self._desk.changed:
                await self._desk.changed.wait_for(lambda: set(self._lanes) <= set(self._desk.held))
        except TimeoutError:
            pass
        return await self.status()

    async def status(self) -> OutboxStatus:
        waiting = await self._desk.disk(self._file.count)
        dead = await self._desk.disk(self._file.dead)
        return OutboxStatus(waiting, len(dead), dict(self._desk.held), self._attached is True)

    async def dead(self) -> list[DeadLetter]:
        """Events that the hub will never take as they are, each with its answer."""
        return await self._desk.disk(self._file.dead)

    async def drop(self, number: int) -> DeadLetter | None:
        """Forget one of the dead; what it was."""
        return await self._desk.disk(self._file.forget, number)

    async def requeue(self, number: int, event: Event | None = None) -> list[EventId]:
        """One of the dead once more, mended or as it was, behind all that waits."""
        dead = await self.drop(number)
        if dead is None:
            raise OutboxError(f"There is no dead event {number}.")
        again = event or {name: value for name, value in dead.event.items() if name != "id"}
        return await self.emit(dead.stream, again)

    async def keep(self, **changes: Any) -> Profile:
        """Change the profile: `application`, `interests`. It is there again at the next start."""
        self.profile = self.profile._replace(**changes)
        await self._desk.disk(self._file.keep, self.profile)
        return self.profile

    async def __aenter__(self) -> "Outbox":
        self._file = await self._desk.open(self._path)
        await self._hub.__aenter__()
        found = await self._desk.disk(self._file.profile)
        application = self._terms.application or found.application
        self.profile = found._replace(application=application)
        await self._next_incarnation()
        for stream in await self._desk.disk(self._file.streams):
            self._start(stream)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        lanes = list(self._lanes.values())
        for lane in lanes:
            lane.cancel()
        await asyncio.gather(*lanes, return_exceptions=True)
        await self._hub.__aexit__(kind, error, trace)
        await self._desk.close()

    # --- release ---

    def _start(self, stream: str) -> None:
        if stream not in self._lanes:
            lane = StreamSender(stream, self._desk)
            self._lanes[stream] = asyncio.create_task(self._run(stream, lane))

    async def _run(self, stream: str, lane: StreamSender) -> None:
        try:
            await lane.run()
        except Exception:  # of the disk: what waits is tried again with the next emit or start
            _log.exception("the outbox %s has stopped sending to %s", self._path, stream)
        finally:
            self._lanes.pop(stream, None)  # with no await since the lane found nothing
            self._desk.held.pop(stream, None)
            await self._desk.tell()

    async def _send(self, stream: str, batch: Sequence[Queued]) -> HubProblem | None:
        """One try; None when the hub has stored it all."""
        body = b"[" + b",".join(queued.event for queued in batch) + b"]"
        try:
            await self._hub.http.ask(Request("POST", stream_path(stream, "events"), body))
        except HubProblem as problem:
            await self._reached()
            return problem
        except UNREACHABLE as error:
            self._attached = False
            return refusal({"code": "unreachable", "status": 503, "detail": str(error)})
        await self._reached()
        return None

    async def _reached(self) -> None:
        """The hub answered: after a time without it, that is a reconnection (FOX-51)."""
        before, self._attached = self._attached, True
        if before is True:
            return
        if before is False:
            await self._next_incarnation()
        try:
            address, ip = await asyncio.to_thread(addresses, self._hub.base_url)
        except OSError:
            return
        self.profile = self.profile.attached(self._hub.base_url, address, ip)
        await self._desk.disk(self._file.keep, self.profile)

    async def _next_incarnation(self) -> None:
        """On the disk before the first id is made with it."""
        self.profile = self.profile._replace(incarnation=self.profile.incarnation + 1)
        await self._desk.disk(self._file.keep, self.profile)
        self._issuer = IdIssuer(
            client="", clock=self._terms.clock, incarnation=self.profile.incarnation
        )

    def _complete(self, event: Event) -> tuple[EventId, bytes]:
        id = self._issuer.next()
        made = {**event, "id": id.wire()}
        if self.profile.application:
            made.setdefault("application", list(self.profile.application))
        return id, orjson.dumps(made)

    async def _renumbered(self, queued: Queued) -> Queued:
        """Nobody knows whether the event was stored under its old id: under a new one it will be,
        perhaps once more.
        """
        await self._next_incarnation()
        event = orjson.loads(queued.event)
        _log.warning("event %s gets a new id: %s is below its window", queued.number, event["id"])
        return Queued(queued.number, self._complete(event)[1])
