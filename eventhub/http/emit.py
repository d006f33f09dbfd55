"""The checks of emitted events, their append, and the answer. Plain module."""

import asyncio
import hashlib
from collections.abc import Sequence
from functools import partial
from typing import Annotated, NamedTuple, TypedDict

import orjson
from msgspec import Meta

from eventhub.access.authorizer import Authorizer
from eventhub.access.grants import HUB_STREAMS
from eventhub.access.principal import Principal, is_shown
from eventhub.access.quotas import RateLimited, ZoneStorageFull
from eventhub.access.sessions import ActingSession
from eventhub.base import metrics
from eventhub.base.errors import (
    EventHubError,
    Forbidden,
    UnknownChannel,
)
from eventhub.event.envelope import Event
from eventhub.event.identity import stored_incarnation
from eventhub.event.inbound import EventIn, IdIn, event_mask, stored_bytes
from eventhub.event.json_types import Int64, Uuid
from eventhub.eventlog.drafts import Appended, Draft, DraftProducer
from eventhub.eventlog.log import Log
from eventhub.eventlog.stored import Cursor, StreamInfo
from eventhub.http.messages import (
    Headers,
    Response,
)
from eventhub.types.cost import Budget
from eventhub.types.originals import (
    PossibleCopy,
    may_be_copy,
    require_kept,
    require_repeats_kept,
)
from eventhub.types.registry import TypeRegistry


class RangeJson(TypedDict):
    """Events stored with consecutive sequence numbers."""

    segment: Uuid
    first: Int64
    last: Int64


class DuplicateJson(TypedDict):
    """An event that was stored before."""

    index: Annotated[int, Meta(description="Position in the request.")]
    segment: Uuid
    sequence: Int64


class EmittedJson(TypedDict):
    """The positions of the events of a request."""

    stream: str
    ranges: list[RangeJson]
    duplicates: list[DuplicateJson]


_ONE_RANGE = b'{"stream":%b,"ranges":[{"segment":"%b","first":%d,"last":%d}],"duplicates":[]}'


class Emitted(NamedTuple):
    """The positions of the events of one request: ranges of new sequence numbers, and the events
    that were stored before.
    """

    stream: str
    ranges: list[tuple[str, int, int]]  # segment, first, last
    duplicates: list[tuple[int, str, int]]  # index in the request, segment, sequence
    head: Cursor  # the last event of the stream, as of this request

    def json(self) -> EmittedJson:
        return {
            "stream": self.stream,
            "ranges": [{"segment": s, "first": f, "last": e} for s, f, e in self.ranges],
            "duplicates": [
                {"index": i, "segment": s, "sequence": n} for i, s, n in self.duplicates
            ],
        }

    def response(self) -> Response:
        """Return the answer, with the numbers that the request added as a header."""
        headers: Headers = []
        if self.ranges:
            headers.append((b"eventhub-caused", b"%d-%d" % (self.ranges[0][1], self.ranges[-1][2])))
        return Response(200, self._body(), headers, position=self.head)

    def _body(self) -> bytes:
        """Return the answer as JSON; the most frequent one is formatted without objects."""
        if self.duplicates or len(self.ranges) != 1:
            return orjson.dumps(self.json())
        [(segment, first, last)] = self.ranges
        values = (orjson.dumps(self.stream), segment.encode(), first, last)
        return _ONE_RANGE % values


class EmitServices(NamedTuple):
    """What the emit route works with."""

    log: Log
    authorizer: Authorizer
    types: TypeRegistry


class Sender(NamedTuple):
    """The emitting principal, and the key that identifies repeats of the request ("": none)."""

    principal: Principal
    idempotency_key: str = ""


def require_emit(principal: Principal, stream: str) -> None:
    """Raise Forbidden unless the principal may emit into the stream."""
    if stream in HUB_STREAMS:
        raise Forbidden(
            f"Only the hub itself writes to the stream `{stream}`; emit to another stream."
        )
    principal.require("emit", stream)


async def emit(
    services: EmitServices, sender: Sender, info: StreamInfo, events: Sequence[EventIn]
) -> Emitted:
    """Append the events of one request, all or none (EMC-03): an error refuses the whole request.

    Raises subclasses of BadRequest, TypeViolation, TypeTooCostly, UndeclaredType and
    ImmutableProperty with the event's index, RateLimited, ZoneStorageFull, and what Log.append
    raises. Call
    `require_emit` before.
    """
    principal = sender.principal
    await require_allowed(services, principal, info, len(events))
    if principal.session is not None:
        _require_supplied(principal.session, events)
    types = await services.types.zone(principal.zone_id)
    checked = bool(types) or info.undeclared == "refuse"
    drafts: list[Draft] = []
    possible: list[PossibleCopy] = []  # that may be copies of stored events
    async with Budget(services.types.expensive_checks) as budget:
        for index, event in enumerate(events):
            try:
                mask = event_mask(event)
                if not isinstance(mask, int):
                    mask = await _named_mask(services.authorizer, principal.zone_id, mask)
                checker = types.checker(event, undeclared=info.undeclared) if checked else None
                payload = stored_bytes(
                    event,
                    client=principal.client,
                    mask=mask,
                    filterable_data=info.filterable_data,
                )
                if checker is not None:
                    await budget.spend(checker.work(event, len(payload)))
                    checker.check(event)
            except EventHubError as error:
                error.index = index
                raise
            draft = _draft(sender, info.id, event, (index, mask, payload))
            if checker is not None and checker.immutable and may_be_copy(event, draft):
                await budget.spend(checker.comparison)
                possible.append(PossibleCopy(index, event, draft, checker.immutable))
            drafts.append(draft)
    if possible:
        copies = [one.as_copy() for one in possible]
        found = await services.log.originals(principal.zone_id, copies)
        require_kept(possible, found, partial(_may_see, principal))
        require_repeats_kept(possible, events, drafts)
    return await appended(services, principal, info, drafts)


async def require_allowed(
    services: EmitServices, principal: Principal, info: StreamInfo, count: int
) -> None:
    """Spend the caller's quotas on so many events. Raises RateLimited, ZoneStorageFull."""
    if info.durability != "transient":
        principal.require_storage()
    if principal.rates is not None:
        await services.authorizer.rates.spend(principal, count)


async def appended(
    services: EmitServices, principal: Principal, info: StreamInfo, drafts: list[Draft]
) -> Emitted:
    """Append checked drafts; return their positions. Raises what Log.append raises."""
    return _emitted(info.name, await services.log.append(drafts, info, principal.queue_owner))


def _require_supplied(session: ActingSession, events: Sequence[EventIn]) -> None:
    """Raise SessionSuspended, or TypeNotSupplied with the index of the first event of a type that
    the session has not declared (RDY-03).
    """
    for index, event in enumerate(events):
        try:
            session.require_supplied(event.domain, event.type)
        except EventHubError as error:
            error.index = index
            raise


def _may_see(principal: Principal, stream: str, event: Event) -> bool:
    return principal.beside_session().may_listen(stream) and is_shown(event, principal)


def _draft(
    sender: Sender, stream_id: int, event: EventIn, checked: tuple[int, int, bytes]
) -> Draft:
    index, mask, payload = checked
    if event.id is None and not sender.idempotency_key:
        return Draft(stream_id, mask, payload, None, event.key, event.tombstone)
    producer = _producer(sender.principal.client_id, event)
    token = b"" if producer else _token(sender, event, index)
    return Draft(stream_id, mask, payload, producer, event.key, event.tombstone, token)


async def _named_mask(authorizer: Authorizer, zone_id: int, names: Sequence[str]) -> int:
    try:
        return await authorizer.mask(zone_id, names)
    except UnknownChannel as error:
        error.field = "channels"
        raise


def _producer(client_id: int, event: EventIn) -> DraftProducer | None:
    """Return the producer in whose window of ids a repeat is looked for, if the id names one."""
    id = event.id
    if not isinstance(id, IdIn):
        return None
    window = stored_incarnation(id.incarnation, id.timestamp)
    return DraftProducer(client_id, window, id.sequence)


def _token(sender: Sender, event: EventIn, index: int) -> bytes:
    """Return the token that identifies repeats of an event: of its id, if that is a text, per
    client and node; else of the request's idempotency key and the event's index.
    """
    if isinstance(event.id, str):
        identity = ("id", event.node, event.id)
    elif sender.idempotency_key:
        identity = ("key", str(index), sender.idempotency_key)
    else:
        return b""
    encoded = orjson.dumps((sender.principal.client_id, *identity))
    return hashlib.blake2b(encoded, digest_size=16).digest()


def _emitted(stream: str, appended: list[Appended]) -> Emitted:
    ranges: list[tuple[str, int, int]] = []
    duplicates: list[tuple[int, str, int]] = []
    known: Cursor | None = None
    for index, (_, segment, sequence, duplicate, head) in enumerate(appended):
        if duplicate:
            duplicates.append((index, segment, sequence))
            known = head
        elif ranges and ranges[-1][0] == segment and ranges[-1][2] == sequence - 1:
            ranges[-1] = (segment, ranges[-1][1], sequence)
        else:
            ranges.append((segment, sequence, sequence))
    if duplicates:
        metrics.DUPLICATES.inc(len(duplicates))
    if known is None:
        segment, _, sequence = ranges[-1]
        known = Cursor(segment, sequence)
    return Emitted(stream, ranges, duplicates, known)


async def require_quotas(authorizer: Authorizer, principal: Principal, info: StreamInfo) -> None:
    """Raise RateLimited or ZoneStorageFull if a quota is known to be used up; after a pause, in
    which nothing is read.
    """
    try:
        if info.durability != "transient":
            principal.require_storage()
        authorizer.rates.require(principal)
    except (RateLimited, ZoneStorageFull):
        await asyncio.sleep(authorizer.rates.refusal_pause_s(principal))
        raise
