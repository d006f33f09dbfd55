"""The checks of emitted events, their append, and the answer. Plain module."""

import asyncio
import hashlib
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import orjson

from eventhub.access.authorizer import Authorizer
from eventhub.access.grants import HUB_STREAMS
from eventhub.access.principal import Principal, is_shown
from eventhub.access.quotas import RateLimited, ZoneStorageFull
from eventhub.access.sessions import ActingSession
from eventhub.base.errors import (
    EventHubError,
    Forbidden,
    UnknownChannel,
)
from eventhub.event.envelope import Event
from eventhub.event.identity import stored_incarnation
from eventhub.event.inbound import EventIn, IdIn, event_mask, stored_bytes
from eventhub.eventlog.drafts import Draft, DraftProducer
from eventhub.eventlog.log import Log
from eventhub.eventlog.stored import StreamInfo
from eventhub.http.delayed_emits import append_delayed, due_of
from eventhub.http.emitted import Emitted, emitted
from eventhub.types.cost import Budget
from eventhub.types.originals import (
    PossibleCopy,
    may_be_copy,
    require_kept,
    require_repeats_kept,
)
from eventhub.types.registry import TypeRegistry


class EmitServices(NamedTuple):
    """What the emit route works with."""

    log: Log
    authorizer: Authorizer
    types: TypeRegistry


class Sender(NamedTuple):
    """The emitting principal, and the key that identifies repeats of the request ("": none)."""

    principal: Principal
    idempotency_key: str = ""


class CheckedDrafts(NamedTuple):
    """The drafts of events, and the times at which delayed ones are due, in microseconds since
    1970, by index.
    """

    drafts: list[Draft]
    due: dict[int, int]


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
    and Log.append_delayed raise. Call `require_emit` before.
    """
    principal = sender.principal
    await require_allowed(services, principal, info, len(events))
    drafts, due = await checked_drafts(services, sender, info, events)
    if due:
        return await append_delayed(services.log, principal, info, drafts, due)
    return await appended(services, principal, info, drafts)


async def checked_drafts(
    services: EmitServices, sender: Sender, info: StreamInfo, events: Sequence[EventIn]
) -> CheckedDrafts:
    """Check events as an emit does; nothing is spent of quotas, nothing appended. Raises subclasses
    of BadRequest, TypeViolation, TypeTooCostly, UndeclaredType and ImmutableProperty with the
    event's index.
    """
    principal = sender.principal
    if principal.session is not None:
        _require_supplied(principal.session, events)
    types = await services.types.zone(principal.zone_id)
    checked = bool(types) or info.undeclared == "refuse"
    drafts: list[Draft] = []
    due: dict[int, int] = {}  # of delayed events, by index
    possible: list[PossibleCopy] = []  # that may be copies of stored events
    async with Budget(services.types.expensive_checks) as budget:
        for index, event in enumerate(events):
            try:
                if event.deliver_at is not None or event.delay_ms is not None:
                    due[index] = due_of(info, event)
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
            draft = _draft(sender, info.id, event, (index, mask, payload, index in due))
            if checker is not None and checker.immutable and may_be_copy(event, draft):
                await budget.spend(checker.comparison)
                possible.append(PossibleCopy(index, event, draft, checker.immutable))
            drafts.append(draft)
    if possible:
        copies = [one.as_copy() for one in possible]
        found = await services.log.originals(principal.zone_id, copies)
        require_kept(possible, found, partial(_may_see, principal))
        require_repeats_kept(possible, events, drafts)
    return CheckedDrafts(drafts, due)


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
    return emitted(info.name, await services.log.append(drafts, info, principal.queue_owner))


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
    sender: Sender, stream_id: int, event: EventIn, checked: tuple[int, int, bytes, bool]
) -> Draft:
    index, mask, payload, is_delayed = checked
    if event.id is None and not sender.idempotency_key:
        return Draft(stream_id, mask, payload, None, event.key, event.tombstone)
    # the window of a producer may have passed a delayed event when that is due
    producer = None if is_delayed else _producer(sender.principal.client_id, event)
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
    client and node; of the id object of a delayed event; else of the request's idempotency key and
    the event's index.
    """
    identity: tuple[str, ...]
    if isinstance(event.id, IdIn):
        id = event.id
        identity = ("producer", str(id.incarnation), str(id.timestamp), str(id.sequence))
    elif isinstance(event.id, str):
        identity = ("id", event.node, event.id)
    elif sender.idempotency_key:
        identity = ("key", str(index), sender.idempotency_key)
    else:
        return b""
    encoded = orjson.dumps((sender.principal.client_id, *identity))
    return hashlib.blake2b(encoded, digest_size=16).digest()


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
