"""A durable queue of events: on the local disk when `emit` returns, in the hub as soon as it is
reachable, in order, each event once (FOX-49, FOX-51, FOX-84). Plain module.
"""

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path
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
    """The status of an outbox. `blocked`: streams that need a manual action, with the hub's
    problem.
    """

    pending: int
    dead_letters: int
    blocked: dict[str, HubProblem]
    attached: bool  # the last request got an answer


class Outbox:
    """`async with Outbox("till.outbox", url, key) as outbox: await outbox.emit("orders", event)`.

    One process at a time may open a file (OutboxBusy). Each stream keeps its order. Events are sent
    again until the hub has acknowledged them; the ids that they get in `emit` let the hub store
    each once.
    """

    def __init__(
        self, path: Path | str, url: str, key: str, options: OutboxOptions | None = None
    ) -> None:
        self._path = Path(path)
        self._hub = HubClient(url, key)
        self._options = options or OutboxOptions()
        self._senders: dict[str, asyncio.Task[None]] = {}
        self._attached: bool | None = None  # None: no request since the start
        self._context = OutboxContext(self._send, self._renumbered, self._options)
        self._file: OutboxFile
        self._issuer: IdIssuer
        self.profile = Profile()

    async def emit(self, stream: str, events: Event | Sequence[Event]) -> list[EventId]:
        """Queue one event or several and return their ids; they are on the disk then.

        Raises OutboxFull, and ValueError for an event that has an id.
        """
        given = [events] if isinstance(events, dict) else list(events)
        if any("id" in event for event in given):
            raise ValueError("Leave out `id`: the outbox gives each event an id of its own.")
        made = [self._complete(event) for event in given]
        await self._context.disk(self._file.put, stream, [body for _, body in made])
        self._start(stream)
        return [id for id, _ in made]

    async def flush(self, timeout_s: float | None = None) -> OutboxStatus:
        """Wait until nothing is pending, or all that is pending is blocked, or the time is over."""
        try:
            async with asyncio.timeout(timeout_s), self._context.changed:
                await self._context.changed.wait_for(
                    lambda: set(self._senders) <= set(self._context.blocked)
                )
        except TimeoutError:
            pass
        return await self.status()

    async def status(self) -> OutboxStatus:
        """Return what is pending, dead-lettered and blocked."""
        pending = await self._context.disk(self._file.count)
        letters = await self._context.disk(self._file.dead_letters)
        return OutboxStatus(
            pending, len(letters), dict(self._context.blocked), self._attached is True
        )

    async def dead_letters(self) -> list[DeadLetter]:
        """Return the events that the hub will never accept as they are, each with its answer."""
        return await self._context.disk(self._file.dead_letters)

    async def drop(self, number: int) -> DeadLetter | None:
        """Delete a dead letter and return it; None if there is none of that number."""
        return await self._context.disk(self._file.drop, number)

    async def requeue(self, number: int, event: Event | None = None) -> list[EventId]:
        """Queue a dead letter again, corrected or as it was, after all that is pending."""
        letter = await self.drop(number)
        if letter is None:
            raise OutboxError(f"There is no dead letter {number}.")
        again = event or {name: value for name, value in letter.event.items() if name != "id"}
        return await self.emit(letter.stream, again)

    async def save_profile(self, **changes: Any) -> Profile:
        """Change the profile (`application`, `interests`), which is stored with the queue."""
        self.profile = self.profile._replace(**changes)
        await self._context.disk(self._file.save_profile, self.profile)
        return self.profile

    async def __aenter__(self) -> "Outbox":
        self._file = await self._context.open(self._path)
        await self._hub.__aenter__()
        found = await self._context.disk(self._file.profile)
        application = self._options.application or found.application
        self.profile = found._replace(application=application)
        await self._next_incarnation()
        for stream in await self._context.disk(self._file.streams):
            self._start(stream)
        return self

    async def __aexit__(self, *_: object) -> None:
        senders = list(self._senders.values())
        for sender in senders:
            sender.cancel()
        await asyncio.gather(*senders, return_exceptions=True)
        await self._hub.__aexit__()
        await self._context.close()

    # --- sending ---

    def _start(self, stream: str) -> None:
        if stream not in self._senders:
            sender = StreamSender(stream, self._context)
            self._senders[stream] = asyncio.create_task(self._run(stream, sender))

    async def _run(self, stream: str, sender: StreamSender) -> None:
        try:
            await sender.run()
        except Exception:  # of the disk: sent again with the next emit or start
            _log.exception("the outbox %s has stopped sending to %s", self._path, stream)
        finally:
            self._senders.pop(stream, None)  # no await since the sender found the queue empty
            self._context.blocked.pop(stream, None)
            await self._context.notify()

    async def _send(self, stream: str, batch: Sequence[Queued]) -> HubProblem | None:
        """Send a batch once; return None when the hub has stored it all."""
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
        """Record an answer of the hub: after a failure it is a reconnection (FOX-51)."""
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
        await self._context.disk(self._file.save_profile, self.profile)

    async def _next_incarnation(self) -> None:
        """Store the next incarnation before the first id uses it."""
        self.profile = self.profile._replace(incarnation=self.profile.incarnation + 1)
        await self._context.disk(self._file.save_profile, self.profile)
        self._issuer = IdIssuer(
            client="", clock=self._options.clock, incarnation=self.profile.incarnation
        )

    def _complete(self, event: Event) -> tuple[EventId, bytes]:
        id = self._issuer.next()
        made = {**event, "id": id.wire()}
        if self.profile.application:
            made.setdefault("application", list(self.profile.application))
        return id, orjson.dumps(made)

    async def _renumbered(self, queued: Queued) -> Queued:
        """Return the event with a new id: it is unknown whether it was stored under the old one, so
        it may be stored twice.
        """
        await self._next_incarnation()
        event = orjson.loads(queued.event)
        _log.warning("event %s gets a new id: %s is below its window", queued.number, event["id"])
        return Queued(queued.number, self._complete(event)[1])
