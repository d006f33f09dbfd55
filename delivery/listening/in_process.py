"""The hub inside a process, with the client's own two calls: Plain module.

`emit` and `listen` without a network (EMC-01).
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, suppress
from typing import Any

import orjson
from eventhub_client.types import At, Cursor, Delivered, HubProblem, Receipt, Start

from delivery.listening.batch import Turn
from delivery.listening.frames import Heading
from delivery.listening.listener import Listening, Sources
from delivery.listening.request import Wish, chosen
from delivery.listening.single import Single, told
from eventhub.base import limits
from eventhub.base.errors import DatabaseUnavailable, EventHubError
from eventhub.event.inbound import from_objects, parse_mask
from eventhub.event.json_codec import time_text
from eventhub.eventlog import stored as log_types
from eventhub.eventlog.read import Start as LogStart
from eventhub.eventlog.start_positions import parse_start
from eventhub.http.emit import EmitServices, Sender, emit


class LocalHub:
    """Same calls, same answers and same refusals as `eventhub_client.remote.HubClient`, by the
    same credential.
    """

    def __init__(self, sources: Sources, credential: str) -> None:
        self._sources = sources
        self._credential = credential

    async def emit(self, stream: str, events: dict[str, Any] | Sequence[dict[str, Any]]) -> Receipt:
        """Store one event or several, all or none. Raises HubProblem."""
        log, authorizer, types = (
            self._sources.log,
            self._sources.authorizer,
            self._sources.types,
        )
        try:
            principal = await authorizer.authenticate(self._credential)
            made = from_objects([events] if isinstance(events, dict) else list(events))
            emitted = await emit(
                EmitServices(log, authorizer, types), Sender(principal), stream, made
            )
        except EventHubError as error:
            raise HubProblem(error.problem()) from error
        return Receipt.of({**emitted.json()})

    async def listen(
        self,
        stream: str,
        *,
        start: Start = "now",
        mask: int | list[str] | None = None,
        **wanted: Any,
    ) -> AsyncIterator[Delivered]:
        """Every event of a stream from a start on, in order, once. `wanted`: domain, type,
        attributes, application, or language and filter, or registrations. Raises HubProblem.
        """
        try:
            wish = _wish(stream, start, mask, wanted)
            async with aclosing(self._told(wish)) as turns:
                async for some in turns:
                    for delivered in some:
                        yield delivered
        except EventHubError as error:
            raise HubProblem(error.problem()) from error

    async def _told(self, wish: Wish) -> AsyncGenerator[list[Delivered], None]:
        """Goes on by itself when the database comes back."""
        sources = self._sources
        principal = await sources.authorizer.authenticate(self._credential)
        reader = Single(sources.authorizer, sources.clock, self._credential, principal)
        listening = await Listening.open(sources, principal, wish)
        try:
            while True:
                async with aclosing(_until_away(reader, listening)) as turns:
                    async for some in turns:
                        yield some
                await asyncio.sleep(limits.HEAD_POLL_INTERVAL_S)
        finally:
            await listening.close()


async def _until_away(
    reader: Single, listening: Listening
) -> AsyncGenerator[list[Delivered], None]:
    """What the reader is told until the database is away."""
    with suppress(DatabaseUnavailable):
        async with aclosing(told(reader, listening, _Handed(), Turn())) as turns:
            async for some in turns:
                yield some


class _Handed:
    """Events as the client's own type."""

    def event(self, heading: Heading, stored: log_types.StoredEvent) -> Delivered:
        return Delivered(
            stored.segment,
            stored.sequence,
            heading.prev,
            heading.liveness,
            orjson.loads(stored.json),
            tuple(heading.registrations),
            time_text(stored.appended_at_us),
        )

    def state(self, listener: str, key: str, stored: log_types.StoredEvent) -> Delivered:
        raise NotImplementedError("A listen inside a process has no snapshot.")

    def message(self, fields: dict[str, Any]) -> Delivered:
        raise NotImplementedError("A listen inside a process has no messages.")


def _wish(stream: str, start: Start, mask: int | list[str] | None, wanted: dict[str, Any]) -> Wish:
    fields = {name: value for name, value in wanted.items() if name != "registrations"}
    pairs, filter = chosen(fields, registrations="registrations" in wanted)
    return Wish(
        stream=stream,
        start=_start(start),
        mask=None if mask is None else parse_mask(mask),
        pairs=pairs,
        filter=filter,
        registrations=tuple(wanted.get("registrations", ())),
        state="never",
    )


def _start(start: Start) -> LogStart:
    if isinstance(start, Cursor):
        return parse_start(f"{start.segment}:{start.sequence}")
    return parse_start(start.text if isinstance(start, At) else start)
