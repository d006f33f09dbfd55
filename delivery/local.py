"""The hub inside a process, with the client's own two calls:

`emit` and `listen` without a network (EMC-01). Plain.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import orjson

from delivery.sessions.protocol import Filter
from eventhub.access.gate import Gate
from eventhub.access.principal import Principal
from eventhub.client.types import Cursor, Delivered, HubProblem, Receipt, Start
from eventhub.clock import Clock
from eventhub.doors.emit import emit
from eventhub.errors import EventHubError, InvalidMask
from eventhub.event.envelope import ALL_MASK
from eventhub.event.inbound import from_objects, parse_mask
from eventhub.eventlog import stored as log_types
from eventhub.eventlog.log import Log
from registrations.lang.pairs import parse_pairs


class LocalHub:
    """Same calls, same answers and same refusals as `eventhub.client.remote.HubClient`."""

    def __init__(self, log: Log, gate: Gate, principal: Principal, clock: Clock) -> None:
        self._log = log
        self._gate = gate
        self._principal = principal
        self._clock = clock

    async def emit(self, stream: str, events: dict[str, Any] | Sequence[dict[str, Any]]) -> Receipt:
        """Store one event or several, all or none. Raises HubProblem."""
        try:
            made = from_objects([events] if isinstance(events, dict) else list(events))
            emitted = await emit(self._log, self._gate, self._principal, stream, made)
        except EventHubError as error:
            raise HubProblem(error.problem()) from error
        return Receipt.of(emitted.json())

    async def listen(
        self, stream: str, *, start: Start = "now", mask: int | None = None, **pairs: Any
    ) -> AsyncIterator[Delivered]:
        """Every event of a stream from a start on, in order, once. Raises HubProblem."""
        try:
            self._principal.require_listen(stream)
            found = await self._gate.stream(self._principal, stream)
            zone = self._principal.zone if stream == "system" else None
            wanted = Filter(mask=_mask(mask), pairs=parse_pairs(pairs), zone=zone)
            begin = log_types.Cursor(*start) if isinstance(start, Cursor) else start
            async with self._log.follow(found, begin) as follower:
                told = follower.cursor.sequence
                async for stored in follower:
                    if wanted.wants(stored, self._clock.now_us()):
                        live = stored.sequence > follower.position.head
                        yield _delivered(stored, told, live=live)
                        told = stored.sequence
        except EventHubError as error:
            raise HubProblem(error.problem()) from error


def _mask(mask: int | None) -> int:
    found = ALL_MASK if mask is None else parse_mask(mask)
    if isinstance(found, list):
        raise InvalidMask(field="mask")
    return found


def _delivered(stored: log_types.Stored, prev: int, *, live: bool) -> Delivered:
    return Delivered(
        stored.segment,
        stored.sequence,
        prev,
        "live" if live else "recovery",
        orjson.loads(stored.json),
    )
