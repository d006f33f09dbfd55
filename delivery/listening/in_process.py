"""The hub inside a process: the client's `emit` and `listen` without a network (EMC-01). Plain
module.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, suppress
from typing import Any

import orjson
from eventhub_client.types import At, Cursor, Delivered, HubProblem, Receipt, Start

from delivery.listening.batch import BatchLimits
from delivery.listening.frames import EventHeader
from delivery.listening.listener import StreamListener
from delivery.listening.request import ListenRequest, parse_selection
from delivery.listening.services import ListenerServices
from delivery.listening.single_reader import SingleReader, batches
from eventhub.base import limits
from eventhub.base.errors import DatabaseUnavailable, EventHubError
from eventhub.event.inbound import from_objects, parse_mask
from eventhub.event.json_codec import time_text
from eventhub.eventlog import stored as log_types
from eventhub.eventlog.read import Start as LogStart
from eventhub.eventlog.start_positions import parse_start
from eventhub.http.emit import EmitServices, Sender, emit, require_emit


class LocalHub:
    """The calls, answers and errors of `eventhub_client.remote.HubClient`, with the same
    credential.
    """

    def __init__(self, services: ListenerServices, credential: str) -> None:
        self._services = services
        self._credential = credential

    async def emit(self, stream: str, events: dict[str, Any] | Sequence[dict[str, Any]]) -> Receipt:
        """Store one event or several, all or none. Raises HubProblem."""
        services = self._services
        try:
            principal = await services.authorizer.authenticate(self._credential)
            drafts = from_objects([events] if isinstance(events, dict) else list(events))
            require_emit(principal, stream)
            info = await services.authorizer.stream(principal, stream)
            emit_services = EmitServices(services.log, services.authorizer, services.types)
            emitted = await emit(emit_services, Sender(principal), info, drafts)
        except EventHubError as error:
            raise HubProblem(error.problem()) from error
        return Receipt.of({**emitted.json()})

    async def listen(
        self,
        stream: str,
        *,
        start: Start = "now",
        mask: int | list[str] | None = None,
        **selection: Any,
    ) -> AsyncIterator[Delivered]:
        """Yield every matching event of a stream from a start on, in order, once. `selection`:
        domain, type, attributes, application, or language and filter, or registrations. Raises
        HubProblem.
        """
        try:
            request = _request(stream, start, mask, selection)
            async with aclosing(self._batches(request)) as found:
                async for batch in found:
                    for delivered in batch:
                        yield delivered
        except EventHubError as error:
            raise HubProblem(error.problem()) from error

    async def _batches(self, request: ListenRequest) -> AsyncGenerator[list[Delivered], None]:
        """Yield batches; continue when the database is available again."""
        services = self._services
        principal = await services.authorizer.authenticate(self._credential)
        reader = SingleReader(services.authorizer, services.clock, self._credential, principal)
        listener = await StreamListener.open(services, principal, request)
        try:
            while True:
                async with aclosing(_until_unavailable(reader, listener)) as found:
                    async for batch in found:
                        yield batch
                await asyncio.sleep(limits.HEAD_POLL_INTERVAL_S)
        finally:
            await listener.close()


async def _until_unavailable(
    reader: SingleReader, listener: StreamListener
) -> AsyncGenerator[list[Delivered], None]:
    """Yield batches until the database is unavailable."""
    with suppress(DatabaseUnavailable):
        async with aclosing(batches(reader, listener, _DeliveredFormat(), BatchLimits())) as found:
            async for batch in found:
                yield batch


class _DeliveredFormat:
    """Events as the client's type."""

    def event(self, header: EventHeader, stored: log_types.StoredEvent) -> Delivered:
        return Delivered(
            stored.segment,
            stored.sequence,
            header.prev,
            header.liveness,
            orjson.loads(stored.json),
            tuple(header.registrations),
            time_text(stored.appended_at_us),
            header.latest_version,
            stored.signature if header.signature else "",
            header.variables or {},
        )

    def compiled(self, subject: str, segment: str) -> None:
        """Return None: the transcoder does not write this type."""

    def state(self, subject: str, key: str, stored: log_types.StoredEvent) -> Delivered:
        raise NotImplementedError("A listener inside a process has no snapshot.")

    def message(self, fields: dict[str, Any]) -> Delivered:
        raise NotImplementedError("A listener inside a process has no messages.")


def _request(
    stream: str, start: Start, mask: int | list[str] | None, selection: dict[str, Any]
) -> ListenRequest:
    other = ("registrations", "signature")
    fields = {name: value for name, value in selection.items() if name not in other}
    pairs, filter = parse_selection(fields, registrations="registrations" in selection)
    return ListenRequest(
        stream=stream,
        start=_start(start),
        mask=None if mask is None else parse_mask(mask),
        pairs=pairs,
        filter=filter,
        registrations=tuple(selection.get("registrations", ())),
        state="never",
        signature=bool(selection.get("signature")),
    )


def _start(start: Start) -> LogStart:
    if isinstance(start, Cursor):
        return parse_start(f"{start.segment}:{start.sequence}")
    return parse_start(start.text if isinstance(start, At) else start)
