"""The audit trail: who changed what, read from the events of `system`. Django module.

It is a projection of the stream, not a table: what it shows is what was committed with the change.
A page examines a bounded number of events, so it may be short, or empty, and still have a `next`.
"""

import ipaddress
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import orjson

from eventhub.access.grants import SYSTEM
from eventhub.access.principal import Actor, is_shown
from eventhub.api.announcements import raw_connection
from eventhub.api.pagination import NUMBER, Page, PreparedPage, cursor_error
from eventhub.base import limits
from eventhub.base.errors import UnknownEvent
from eventhub.event.audience import is_visible_in_zone
from eventhub.event.envelope import Event
from eventhub.event.protobuf_codec import decode
from eventhub.eventlog.backward import Period, events_before
from eventhub.eventlog.system import SYSTEM_STREAM_ID
from eventhub.streams.selectors import find_stored

KINDS = ("operator", "key", "command", "hub")
# filters that compare with a field of the caller, by name; the event contains their values as JSON
_CALLER = ("kind", "operator", "key", "client", "command", "request_id")
_SEQUENCE_MAX = (1 << 63) - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Act(NamedTuple):
    """One act: the event that announced it, and its caller."""

    sequence: int
    at: int  # microseconds since 1970
    event: Event

    @property
    def by(self) -> dict[str, str] | None:
        """The caller; None for an event from before events named it."""
        found = self.event.attributes.get("by")
        return found if isinstance(found, dict) else None

    @property
    def type(self) -> str:
        return self.event.type

    @property
    def correlation(self) -> str:
        return self.event.correlation

    @property
    def zone(self) -> str | None:
        return self.event.attributes.get("zone")

    @property
    def resource(self) -> dict[str, str]:
        """The kind of the resource, and its name or id; empty without one."""
        kind = self.type.partition(".")[0]
        name = self.event.attributes.get(kind)
        return {"kind": kind, "name": "" if name is None else str(name)}

    @property
    def attributes(self) -> dict[str, Any]:
        return {name: one for name, one in self.event.attributes.items() if name != "by"}


def trail(*, actor: Actor, filters: dict[str, Any], page: Page) -> PreparedPage:
    """Return a page of the acts that the actor may see and that match the filters, newest first.
    Without `kind`, the hub's own are omitted. Raises Forbidden, InvalidField.
    """
    actor.require_listen(SYSTEM)
    if page.after and not NUMBER.fullmatch(page.after):
        raise cursor_error()
    before = int(page.after) if page.after else _SEQUENCE_MAX
    period = Period(filters["since"], filters["until"])
    since_us, until_us = (None if one is None else _micros(one) for one in period)
    contains, matches = _needles(filters), _test_of(actor, filters)
    found: list[Act] = []
    examined = 0
    for one in events_before(raw_connection(), SYSTEM_STREAM_ID, before, period):
        if since_us is not None and one.at_us < since_us:
            break
        if len(found) == page.limit or examined == limits.AUDIT_EXAMINED_MAX:
            return PreparedPage(found, str(before))
        before = one.sequence
        examined += 1
        if until_us is not None and one.at_us > until_us:
            continue
        payload = bytes(one.payload)
        if all(needle in payload for needle in contains):
            act = Act(one.sequence, one.at_us, decode(payload))
            if matches(act):
                found.append(act)
    return PreparedPage(found, None)


def find_act(*, actor: Actor, sequence: int | None) -> Act:
    """Return the act that the event with this sequence in `system` announces. Raises Forbidden,
    UnknownEvent.
    """
    _, stored = find_stored(actor=actor, name=SYSTEM, sequence=sequence)
    found = Act(stored.sequence, stored.appended_at_us, stored.event)
    if found.by is None:
        raise UnknownEvent("The event does not name its caller.", field="sequence")
    return found


def _needles(filters: dict[str, Any]) -> list[bytes]:
    """Return bytes that the stored events that match contain: to decode all would take longer."""
    given = (filters[name] for name in _CALLER)
    found = [orjson.dumps(value) for value in given if value is not None]
    if filters["type"] is not None:
        found.append(filters["type"].removesuffix("*").encode())
    return found


def _test_of(actor: Actor, filters: dict[str, Any]) -> Callable[[Act], bool]:
    """Return the test of the filters, and of what the actor may see."""
    expected = {name: filters[name] for name in _CALLER if filters[name] is not None}
    type, network = filters["type"], filters["address"]
    kind, _, name = (filters["resource"] or "").partition(":")

    def matches(act: Act) -> bool:
        by = act.by
        if by is None or (filters["kind"] is None and by["kind"] == "hub"):
            return False
        return (
            is_shown(act.event, actor.principal)
            and (bool(filters["all_zones"]) or is_visible_in_zone(act.event, actor.zone))
            and all(by.get(name) == value for name, value in expected.items())
            and (type is None or _is_of_type(act.type, type))
            and (network is None or _is_within(by.get("address", ""), network))
            and (not kind or act.resource["kind"] == kind)
            and (not name or act.resource["name"] == name)
            and filters["correlation"] in (None, act.correlation)
        )

    return matches


def _is_of_type(type: str, asked: str) -> bool:
    return type.startswith(asked[:-1]) if asked.endswith("*") else type == asked


def _is_within(address: str, network: Network) -> bool:
    return bool(address) and ipaddress.ip_address(address) in network


def _micros(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)
