"""Checks and dry runs of patterns for an actor: which events they read. Django module."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import orjson

from eventhub.access.grants import SYSTEM
from eventhub.access.principal import Actor, is_shown
from eventhub.api.announcements import raw_connection
from eventhub.base import limits
from eventhub.base.clock import SystemClock
from eventhub.base.env import read_env
from eventhub.base.errors import EventHubError, Gone, InvalidField, MissingField, UnknownStream
from eventhub.event import protobuf_codec
from eventhub.event.audience import is_visible_in_zone
from eventhub.event.envelope import DEFAULT_MASK, Event
from eventhub.event.inbound import from_objects, stored_bytes
from eventhub.eventlog import streams
from eventhub.eventlog.archive.reader import archive_of
from eventhub.types.selectors import lineage_of
from registrations.errors import TransientStream
from registrations.filters.evaluate import TypeHierarchy
from registrations.pattern_groups import checked
from registrations.pattern_groups.definition import PatternDefinition, parsed
from registrations.pattern_groups.engine import HubPattern
from registrations.pattern_groups.trial import TriedEvent, steps_of
from registrations.pattern_groups.trial_turns import Owner, trials

_STEP_US = 1_000_000  # between two given events without a time
_END_US = 253_370_764_800_000_000  # the year 9999; what expires later cannot be written


def check(*, language: str, text: str, once: bool = False, recent: bool = False) -> dict[str, Any]:
    """Check a text as on creating a pattern. A mistake in it is part of the answer."""
    try:
        found = parsed(PatternDefinition(language, text, once, recent))
    except EventHubError as error:
        return checked.mistaken(language, error.problem())
    return checked.checked(language, found)


def dry_run(*, actor: Actor, body: Mapping[str, Any]) -> dict[str, Any]:
    """Feed a pattern the events of the body, or those of a stream, and return each step. Raises the
    errors of its language, of emitting an event and of reading a stream, and Unavailable.
    """
    once = body.get("once", False)
    tree = parsed(PatternDefinition(body["language"], body["text"], once)).tree
    stream, given = body.get("stream", ""), body.get("events")
    if (given is None) == (not stream):
        error = MissingField if given is None else InvalidField
        raise error("Give either `events` or a `stream`.", field="events")
    if given is not None:
        for name in ("after", "count"):
            if name in body:
                raise InvalidField("It selects events of a `stream`; omit it.", field=name)
        events: Iterator[TriedEvent] = iter(_given(actor, given))
    else:
        count = body.get("count", limits.PATTERN_DRY_RUN_EVENTS_DEFAULT)
        events = _stored(actor, stream, body.get("after"), count)
    steps, size, matches, is_complete = [], 0, 0, True
    clock = SystemClock()
    until_s = clock.monotonic_s() + limits.PATTERN_DRY_RUN_S_MAX
    hierarchy = hierarchy_of(actor.zone_id)
    pattern = HubPattern(1, tree, once)
    with trials.run(owner_of(actor)) as pause:
        found = steps_of(pattern, events, hierarchy=hierarchy, stream=stream, pause=pause)
        for step, count in found:
            steps.append(step)
            matches += count
            size += len(orjson.dumps(step))
            if size > limits.PATTERN_ANSWER_BYTES_MAX or clock.monotonic_s() > until_s:
                is_complete = False
                break
    return {"steps": steps, "matches": matches, "is_complete": is_complete}


def owner_of(actor: Actor) -> Owner:
    """Return whose trial one of the actor is. Operators have one in a zone."""
    return actor.zone_id, 0 if actor.principal is None else actor.principal.client_id


def hierarchy_of(zone_id: int) -> TypeHierarchy:
    """Return the declared types of a zone with their supertypes, each looked up once."""
    known: dict[tuple[str, str], Callable[[Event], tuple[str, ...]]] = {}

    def hierarchy(event: Event) -> tuple[str, ...]:
        name = event.domain, event.type
        if name not in known:
            known[name] = lineage_of(zone_id=zone_id, domain=name[0], type=name[1]).hierarchy
        return known[name](event)

    return hierarchy


def _given(actor: Actor, items: list[Any]) -> list[TriedEvent]:
    """Return events as they would be stored if the actor emitted them into a stream with the policy
    `filterable_data`. The time of an event counts
    as that of its append; without one it follows the previous event by a second.
    """
    client = "" if actor.principal is None else actor.principal.client
    now_us, found = SystemClock().now_us(), []
    for index, item in enumerate(items):
        try:
            if not isinstance(item, dict):
                raise InvalidField("An event is an object.")
            [event] = from_objects([item])
            payload = stored_bytes(event, client=client, mask=DEFAULT_MASK, filterable_data=True)
            stored = protobuf_codec.decode(payload)
            if stored.time_us >= _END_US:
                raise InvalidField("The time is before the year 9999.", field="time")
        except EventHubError as error:
            error.index = None
            place = f"events.{index}"
            error.field = f"{place}.{error.field}" if error.field else place
            raise
        now_us = stored.time_us or now_us + _STEP_US
        found.append(TriedEvent(stored, "", index + 1, now_us))
    return found


def _stored(actor: Actor, name: str, after: int | None, count: int) -> Iterator[TriedEvent]:
    """Yield the events of a stream that the actor may see, of `count` after a sequence; without
    one the last ones. Raises Forbidden, UnknownStream, TransientStream.
    """
    actor.require_listen(name, field="stream")
    row = streams.find_stream(raw_connection(), actor.zone_id, name)
    if row is None:
        raise UnknownStream(field="stream", stream=name)
    if row.policy.durability == "transient":
        raise TransientStream(field="stream")
    last = row.sequence or 0
    first = max(last - count if after is None else after, (row.first or 1) - 1) + 1
    archive = archive_of(read_env().archive_url)
    for sequence in range(first, min(first + count, last + 1)):
        try:
            stored = streams.read_event(raw_connection(), row, sequence, archive)
        except Gone:
            continue  # dropped meanwhile
        of_zone = name != SYSTEM or actor.principal is None
        if (of_zone or is_visible_in_zone(stored.event, actor.zone)) and is_shown(
            stored.event, actor.principal
        ):
            yield TriedEvent(stored.event, stored.segment, sequence, stored.appended_at_us)
