"""The keyed state of a stream (EMC-42): a snapshot in pages, one key, and its change, which
is an event like any other. Django module.
"""

import os
import re
from typing import NamedTuple

from django.db import transaction
from django.utils.crypto import salted_hmac

from eventhub.access.actor import Actor
from eventhub.access.audience import is_shown
from eventhub.access.grants import SYSTEM
from eventhub.access.selectors import channel_mask
from eventhub.api.announcements import append_events, raw_connection
from eventhub.api.pagination import Page
from eventhub.api.replies import current
from eventhub.base import limits
from eventhub.base.clock import SystemClock
from eventhub.base.errors import FieldTooLong, Forbidden, InvalidField
from eventhub.event import protobuf_codec
from eventhub.event.envelope import Event
from eventhub.event.inbound import EventIn, event_mask, stored_bytes
from eventhub.eventlog import keyed_state, streams
from eventhub.eventlog.append import lock_head
from eventhub.eventlog.drafts import Draft
from eventhub.eventlog.errors import Changed
from eventhub.eventlog.keyed_state import KeyState, StatePage
from eventhub.eventlog.stored import Cursor
from eventhub.eventlog.streams import StreamRow
from eventhub.streams.errors import NotKeyed, UnknownKey
from eventhub.streams.selectors import place_of
from eventhub.types import selectors as types

_NEXT = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.([0-9]{1,18})\.([0-9a-f]{96})")
_NONCE_BYTES = 16


class Snapshot(NamedTuple):
    """A page of the state at `cursor`, the same on all pages. What has changed since is left out:
    the events after the cursor bring it.
    """

    stream: str
    cursor: Cursor
    items: list[KeyState]
    next: str | None


def read_page(*, actor: Actor, stream: str, asked: Page) -> Snapshot:
    """A page of the snapshot. Without what is for others, or has expired: neither a short page nor
    its `next` tells of it. Raises SegmentMismatch if the page before was not of this stream, or of
    a log that is no more.
    """
    actor.require_listen(stream)
    row = _keyed(actor, stream)
    cursor, digest = _begin(row, asked.after)
    items: list[KeyState] = []
    size = 0
    keys_max = asked.limit
    for _ in range(limits.STATE_READS_MAX):
        page = StatePage(digest, cursor.sequence, keys_max)
        found = keyed_state.read_state_now(raw_connection(), row.id, page)
        if not found:
            return Snapshot(stream, cursor, items, None)
        for one in found:
            digest = one.digest
            if not _is_shown(actor, one.stored.event):
                continue
            items.append(one)
            size += len(one.stored.payload)
            if len(items) == asked.limit or size >= limits.STATE_PAGE_BYTES_MAX:
                return Snapshot(stream, cursor, items, _next(cursor, digest))
        keys_max = limits.STATE_PAGE_KEYS_MAX
    return Snapshot(stream, cursor, items, _next(cursor, digest))


def find_key(*, actor: Actor, stream: str, key: str) -> tuple[KeyState, Cursor | None]:
    """The latest event of a key, and where its stream stands. Raises UnknownKey."""
    actor.require_listen(stream)
    row = _keyed(actor, stream)
    found = keyed_state.find_state_now(raw_connection(), row.id, _valid(key))
    if found is None or not _is_shown(actor, found.stored.event):
        raise UnknownKey(field="key")
    return found, place_of(row)


def put_key(
    *, actor: Actor, stream: str, key: str, event: EventIn, expected: int | None
) -> tuple[KeyState, bool]:
    """Append the event, which is the key's state from now on, and whether the key is new.

    `expected`: Changed if the key has changed after that sequence, or is not there; 0: if it is.
    A key whose event is for others keeps no condition: the actor learns that the key is taken, and
    overwrites nothing that it was not shown unless it says so by giving none. Raises what the emit
    door raises, TypeViolation and UndeclaredType too.
    """
    row, client = _writable(actor, stream)
    if event.id is not None:
        raise InvalidField(
            "A state that is put again is the same again: an `id` counts where events are emitted.",
            field="id",
        )
    if event.tombstone or event.key not in ("", _valid(key)):
        raise InvalidField("The event is the state of the key in the path.", field="key")
    event.key = key
    event.correlation = event.correlation or _action()
    mask = event_mask(event)
    if not isinstance(mask, int):
        mask = channel_mask(zone_id=actor.zone_id, channels=mask)
    known = types.lineage_of(zone_id=actor.zone_id, domain=event.domain, type=event.type)
    checker = known.checker(event, undeclared=row.policy.undeclared)
    payload = stored_bytes(event, client=client, mask=mask)
    if checker is not None:
        checker.work(event, len(payload))
        checker.check(event)
    draft = Draft(row.id, mask, payload, key=key)
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
    """Append a tombstone of the type and the channels of the key's latest event. Raises UnknownKey,
    Changed.
    """
    row, client = _writable(actor, stream)
    with transaction.atomic():
        found, _ = _before(actor, row, _valid(key))
        if found is None:
            raise UnknownKey(field="key")
        ended = _tombstone(found, client)
        draft = Draft(row.id, ended.mask, protobuf_codec.encode(ended), key=key, tombstone=True)
        _append(draft._replace(expected=expected))


def _before(actor: Actor, row: StreamRow, key: str) -> tuple[KeyState | None, bool]:
    """The key's latest event, unless it is for others, and whether it is. The head is locked from
    here on: what a condition is held against is what the actor may see.
    """
    lock_head(raw_connection(), row.id)
    found = keyed_state.find_state_now(raw_connection(), row.id, key)
    if found is None or is_shown(found.stored.event, actor.principal):
        return found, False
    return None, True


def _is_shown(actor: Actor, event: Event) -> bool:
    """As a listen tells it: what has expired is not told, nor what is for others."""
    expired = event.expires_at_us and event.expires_at_us <= SystemClock().now_us()
    return not expired and is_shown(event, actor.principal)


def _tombstone(found: KeyState, client: str) -> Event:
    was = found.stored.event
    return Event(
        was.domain,
        was.type,
        {},
        source=client,
        node=client,
        key=found.key,
        mask=found.stored.mask,
        destinations=was.destinations,
        audience=was.audience,
        correlation=_action(),
        tombstone=True,
    )


def _append(draft: Draft) -> None:
    """In the current transaction; the reply tells where."""
    [place] = append_events([draft])
    if reply := current():
        reply.add([place])


def _action() -> str:
    reply = current()
    return reply.action if reply else ""


def _keyed(actor: Actor, name: str) -> StreamRow:
    row = streams.get_stream(raw_connection(), actor.zone_id, name)
    if not row.policy.keyed:
        raise NotKeyed(stream=name)
    return row


def _writable(actor: Actor, name: str) -> tuple[StreamRow, str]:
    """The stream, and the client that emits into it."""
    if name == SYSTEM:
        raise Forbidden("Only the hub itself writes to the stream `system`.")
    actor.require("emit", name)
    if actor.principal is None:
        raise Forbidden("An event has a source: use the key of a client.")
    return _keyed(actor, name), actor.principal.client


def _begin(row: StreamRow, after: str) -> tuple[Cursor, bytes]:
    """Of which moment the snapshot is, and after which digest its page begins."""
    if not after:
        return place_of(row) or Cursor("", 0), b""  # a keyed stream has a place
    found = _NEXT.fullmatch(after)
    if found is None:
        raise InvalidField("Pass the `next` of the page before.", field="after")
    cursor = Cursor(found[1], int(found[2]))
    keyed_state.require_cursor(raw_connection(), row.id, cursor)
    place = bytes.fromhex(found[3])
    return cursor, _veiled(place[:_NONCE_BYTES], place[_NONCE_BYTES:])


def _next(cursor: Cursor, digest: bytes) -> str:
    nonce = os.urandom(_NONCE_BYTES)
    return f"{cursor.segment}.{cursor.sequence}.{(nonce + _veiled(nonce, digest)).hex()}"


def _veiled(nonce: bytes, digest: bytes) -> bytes:
    """A digest, or one that was veiled: it may be of a key that is for others, and who guesses a
    key could compare.
    """
    veil = salted_hmac("eventhub.streams.state", nonce, algorithm="sha256").digest()
    return bytes(one ^ other for one, other in zip(digest, veil, strict=True))


def _valid(key: str) -> str:
    """The key in a path, which is one that an event can have."""
    if len(key) > limits.TEXT_CHARS_MAX:
        raise FieldTooLong(field="key", chars_max=limits.TEXT_CHARS_MAX)
    if "\0" in key:
        raise InvalidField("A key holds no NUL.", field="key")
    return key
