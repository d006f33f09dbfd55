"""Checks an event that a management request contains, and the stream that it names, as the emit
route does. Django module.
"""

from eventhub.access.grants import HUB_STREAMS
from eventhub.access.principal import Actor, is_shown
from eventhub.access.selectors import channel_mask
from eventhub.api.announcements import raw_connection
from eventhub.base.errors import Forbidden
from eventhub.event.envelope import Event
from eventhub.event.errors import ImmutableProperty
from eventhub.event.inbound import EventIn, event_mask, stored_bytes
from eventhub.eventlog import streams
from eventhub.eventlog.drafts import Draft
from eventhub.eventlog.errors import StreamDeleting
from eventhub.eventlog.originals import find_originals_now
from eventhub.eventlog.streams import StreamRow
from eventhub.types import selectors as types
from eventhub.types.originals import PossibleCopy, may_be_copy, require_kept


def stream_to_emit(actor: Actor, name: str) -> StreamRow:
    """Return the stream, to which the actor may emit. Raises Forbidden, UnknownStream,
    StreamDeleting.
    """
    if name in HUB_STREAMS:
        raise Forbidden(
            f"Only the hub itself writes to the stream `{name}`; choose another stream.",
            field="stream",
        )
    actor.require("emit", name)
    found = streams.get_stream(raw_connection(), actor.zone_id, name)
    if found.deletes_at_us is not None:
        raise StreamDeleting.of(name, found.deletes_at_us, field="stream")
    return found


def checked_draft(*, actor: Actor, row: StreamRow, event: EventIn, client: str) -> Draft:
    """Return the event of a client as a draft for the stream. Raises what the emit route raises,
    including TypeViolation, UndeclaredType, ImmutableProperty and TypeNotSupplied.
    """
    if actor.session is not None:
        actor.session.require_supplied(event.domain, event.type)
    mask = event_mask(event)
    if not isinstance(mask, int):
        mask = channel_mask(zone_id=actor.zone_id, channels=mask)
    declared = types.lineage_of(zone_id=actor.zone_id, domain=event.domain, type=event.type)
    checker = declared.checker(event, undeclared=row.policy.undeclared)
    filterable = row.policy.filterable_data
    payload = stored_bytes(event, client=client, mask=mask, filterable_data=filterable)
    if checker is not None:
        checker.work(event, len(payload))
        checker.check(event)
    draft = Draft(row.id, mask, payload, key=event.key, tombstone=event.tombstone)
    if checker is not None and checker.immutable and may_be_copy(event, draft):
        _require_kept(actor, PossibleCopy(0, event, draft, checker.immutable))
    return draft


def _require_kept(actor: Actor, possible: PossibleCopy) -> None:
    """Raise ImmutableProperty if the event is a copy that changes an immutable property."""

    def may_see(stream: str, event: Event) -> bool:
        return actor.beside_session().may_listen(stream) and is_shown(event, actor.principal)

    found = find_originals_now(raw_connection(), actor.zone_id, [possible.as_copy()])
    try:
        require_kept([possible], found, may_see)
    except ImmutableProperty as error:
        error.index = None
        raise
