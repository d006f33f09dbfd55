"""The keyed state of a stream (EMC-42): a snapshot in pages, one key, and its change by an event.
Django module.
"""

import os
import re
from typing import NamedTuple

from django.db import transaction
from django.utils.crypto import salted_hmac

from eventhub.access.grants import HUB_STREAMS
from eventhub.access.principal import Actor, is_shown
from eventhub.access.rate_limits import spend_now
from eventhub.api.announcements import append_events, raw_connection
from eventhub.api.pagination import Page
from eventhub.api.replies import about, current
from eventhub.base import limits
from eventhub.base.clock import SystemClock
from eventhub.base.errors import FieldTooLong, Forbidden, InvalidField
from eventhub.event import protobuf_codec
from eventhub.event.envelope import Event
from eventhub.event.inbound import EventIn
from eventhub.eventlog import keyed_state, streams
from eventhub.eventlog.append import lock_head
from eventhub.eventlog.drafts import Draft
from eventhub.eventlog.errors import Changed, StreamDeleting
from eventhub.eventlog.keyed_state import KeyState, StatePage
from eventhub.eventlog.stored import Cursor
from eventhub.eventlog.streams import StreamRow
from eventhub.streams.checked_event import checked_draft
from eventhub.streams.errors import NotKeyed, UnknownKey
from eventhub.streams.selectors import about_stream, position_of

_NEXT = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.([0-9]{1,18})\.([0-9a-f]{96})")
_NONCE_BYTES = 16


class SnapshotPage(NamedTuple):
    """A page of the state at `cursor`, which all pages share. Keys that changed since are omitted;
    the events after the cursor have them.
    """

    stream: str
    cursor: Cursor
    items: list[KeyState]
    next: str | None


def read_page(*, actor: Actor, stream: str, page: Page) -> SnapshotPage:
    """Return a page of the snapshot, without events for others and expired ones, which neither a
    short page nor its `next` reveals. Raises SegmentMismatch if the previous page was of another
    stream or log.
    """
    actor.require_listen(stream)
    row = _keyed(actor, stream)
    cursor, digest = _begin(row, page.after)
    about(row.id, cursor)
    items: list[KeyState] = []
    size = 0
    keys_max = page.limit
    for _ in range(limits.STATE_READS_MAX):
        part = StatePage(digest, cursor.sequence, keys_max)
        found = keyed_state.read_state_now(raw_connection(), row.id, part)
        if not found:
            return SnapshotPage(stream, cursor, items, None)
        for one in found:
            digest = one.digest
            if not _is_shown(actor, one.stored.event):
                continue
            items.append(one)
            size += len(one.stored.payload)
            if len(items) == page.limit or size >= limits.STATE_PAGE_BYTES_MAX:
                return SnapshotPage(stream, cursor, items, _next(cursor, digest))
        keys_max = limits.STATE_PAGE_KEYS_MAX
    return SnapshotPage(stream, cursor, items, _next(cursor, digest))


def find_key(*, actor: Actor, stream: str, key: str) -> KeyState:
    """Return the latest event of a key. Raises UnknownKey."""
    actor.require_listen(stream)
    row = _keyed(actor, stream)
    found = keyed_state.find_state_now(raw_connection(), row.id, _valid(key))
    if found is None or not _is_shown(actor, found.stored.event):
        raise UnknownKey(field="key")
    return found


def put_key(
    *, actor: Actor, stream: str, key: str, event: EventIn, expected: int | None
) -> tuple[KeyState, bool]:
    """Append the event as the new state of the key. Return it, and True if the key is new.

    `expected`: raise Changed if the key changed after that sequence or does not exist; 0: if it
    exists. No condition holds for a key whose event is for others: the actor learns that the key is
    taken, and overwrites it only without a condition. Raises what the emit route raises, including
    TypeViolation, UndeclaredType and ImmutableProperty.
    """
    row, client = _writable(actor, stream)
    if event.id is not None:
        raise InvalidField(
            "Omit `id`: putting a state is idempotent. Only emits use the id of an event.",
            field="id",
        )
    if event.tombstone or event.key not in ("", _valid(key)):
        raise InvalidField("The event must be the state of the key in the path.", field="key")
    event.key = key
    event.correlation = event.correlation or _action()
    draft = checked_draft(actor=actor, row=row, event=event, client=client)
    with transaction.atomic():
        before, hidden = _before(actor, row, key)
        if not hidden:
            draft = draft._replace(expected=expected)
        elif expected is not None:
            raise Changed(current=0)
        _append(draft)
        found = keyed_state.find_state_now(raw_connection(), row.id, key)
    if found is None:
        raise UnknownKey(field="key")
    return found, before is None


def delete_key(*, actor: Actor, stream: str, key: str, expected: int | None) -> None:
    """Append a tombstone with the type and channels of the key's latest event. Raises UnknownKey,
    Changed.
    """
    row, client = _writable(actor, stream)
    with transaction.atomic():
        found, _ = _before(actor, row, _valid(key))
        if found is None:
            raise UnknownKey(field="key")
        tombstone = _tombstone(found, client)
        if actor.session is not None:
            actor.session.require_supplied(tombstone.domain, tombstone.type)
        payload = protobuf_codec.encode(tombstone)
        draft = Draft(row.id, tombstone.mask, payload, key=key, tombstone=True)
        _append(draft._replace(expected=expected))


def _before(actor: Actor, row: StreamRow, key: str) -> tuple[KeyState | None, bool]:
    """Return the key's latest event, None if it is for others, and whether it is. Locks the head,
    so that a condition is evaluated against the event that the actor may see.
    """
    lock_head(raw_connection(), row.id)
    found = keyed_state.find_state_now(raw_connection(), row.id, key)
    if found is None or is_shown(found.stored.event, actor.principal):
        return found, False
    return None, True


def _is_shown(actor: Actor, event: Event) -> bool:
    """Return True if a listener would receive the event: not expired, and not for others."""
    expired = event.expires_at_us and event.expires_at_us <= SystemClock().now_us()
    return not expired and is_shown(event, actor.principal)


def _tombstone(found: KeyState, client: str) -> Event:
    latest = found.stored.event
    return Event(
        latest.domain,
        latest.type,
        {},
        source=client,
        node=client,
        key=found.key,
        mask=found.stored.mask,
        destinations=latest.destinations,
        audience=latest.audience,
        correlation=_action(),
        tombstone=True,
    )


def _append(draft: Draft) -> None:
    """Append in the current transaction; the reply's headers get the position."""
    appended = append_events([draft])
    if reply := current():
        reply.add(appended)


def _action() -> str:
    reply = current()
    return reply.action if reply else ""


def _keyed(actor: Actor, name: str) -> StreamRow:
    row = streams.get_stream(raw_connection(), actor.zone_id, name)
    about_stream(row)
    if not row.policy.keyed:
        raise NotKeyed(stream=name)
    return row


def _writable(actor: Actor, name: str) -> tuple[StreamRow, str]:
    """Return the stream, and the client that emits to it, whose event is counted."""
    if name in HUB_STREAMS:
        raise Forbidden(
            f"Only the hub itself writes to the stream `{name}`; emit to another stream."
        )
    actor.require("emit", name)
    if actor.principal is None:
        raise Forbidden("An event needs a source: use the key of a client.")
    row = _keyed(actor, name)
    if row.deletes_at_us is not None:
        raise StreamDeleting.of(name, row.deletes_at_us)
    actor.principal.require_storage()
    spend_now(raw_connection(), actor.principal)
    return row, actor.principal.client


def _begin(row: StreamRow, after: str) -> tuple[Cursor, bytes]:
    """Return the cursor of the snapshot, and the digest after which the page begins."""
    if not after:
        return position_of(row) or Cursor("", 0), b""  # a keyed stream has a position
    found = _NEXT.fullmatch(after)
    if found is None:
        raise InvalidField("Pass the `next` of the previous page.", field="after")
    cursor = Cursor(found[1], int(found[2]))
    keyed_state.require_cursor(raw_connection(), row.id, cursor)
    token = bytes.fromhex(found[3])
    return cursor, _masked(token[:_NONCE_BYTES], token[_NONCE_BYTES:])


def _next(cursor: Cursor, digest: bytes) -> str:
    nonce = os.urandom(_NONCE_BYTES)
    return f"{cursor.segment}.{cursor.sequence}.{(nonce + _masked(nonce, digest)).hex()}"


def _masked(nonce: bytes, digest: bytes) -> bytes:
    """Mask a digest, or unmask a masked one. It may be of a key that is for others, and a caller
    that guesses keys could compare it.
    """
    mask = salted_hmac("eventhub.streams.state", nonce, algorithm="sha256").digest()
    return bytes(one ^ other for one, other in zip(digest, mask, strict=True))


def _valid(key: str) -> str:
    """Return the key in a path. Raises FieldTooLong, InvalidField if no event can have it."""
    if len(key) > limits.TEXT_CHARS_MAX:
        raise FieldTooLong(field="key", chars_max=limits.TEXT_CHARS_MAX)
    if "\0" in key:
        raise InvalidField("A key must not contain NUL.", field="key")
    return key
