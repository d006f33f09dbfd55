"""Checks of drafts, and explanations of filters on events that an actor may see. Django module."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from django.db.models import Min

from eventhub.access.grants import SYSTEM
from eventhub.access.principal import Actor
from eventhub.access.selectors import channel_mask
from eventhub.api.announcements import raw_connection
from eventhub.base.clock import SystemClock
from eventhub.base.errors import EventHubError, InvalidField, MissingField
from eventhub.event import protobuf_codec
from eventhub.event.envelope import DEFAULT_MASK
from eventhub.event.inbound import event_mask, from_objects, stored_bytes
from eventhub.event.json_codec import time_text
from eventhub.streams.selectors import find_stored
from eventhub.types.selectors import lineage_of
from registrations import statements
from registrations.errors import UnknownRegistration
from registrations.explain.conditions import (
    DeliveryCondition,
    EvaluatedEvent,
    applicable_versions,
    audience_conditions,
    channel_condition,
    conditions_of,
    expiry_condition,
    version_json,
)
from registrations.explain.drafts import checked, mistaken, parse_draft, require_known
from registrations.explain.dry_run_request import mask_of, stream_of
from registrations.explain.statements import ExplainScope, read_statuses_sync
from registrations.filter_source import FILTER_FIELDS, FilterSource, stored_filter
from registrations.filters.explain import explain
from registrations.models import CURRENT, RegistrationVersion
from registrations.probable_mistakes import stream_warnings, type_warnings
from registrations.requests import name_of, number_of, streams_of
from registrations.resolver import Resolver
from registrations.scope import owner, scope
from registrations.selectors import list_registrations

_CHECKED = frozenset((*FILTER_FIELDS, "streams", "client"))
_EXPLAINED = frozenset((*FILTER_FIELDS, "event", "stream", "sequence", "mask", "channels"))


class EventToExplain(NamedTuple):
    """An event to be explained, with its position if it is stored."""

    evaluated: EvaluatedEvent
    stored: dict[str, Any] | None


def check(*, actor: Actor, body: Mapping[str, Any]) -> dict[str, Any]:
    """Check a draft as on registering. A mistake in the filter is part of the answer. Raises
    UnknownField, and errors of a `client` or `streams` that are not names.
    """
    require_known(body, _CHECKED)
    client = name_of(body.get("client"), "client")
    names = body.get("streams")
    if isinstance(names, list) and not all(isinstance(name, str) for name in names):
        raise InvalidField("`streams` is a list of at least one name.", field="streams")
    names = None if names is None else streams_of(names)
    try:
        draft = parse_draft(body)
    except EventHubError as error:
        return {**mistaken(body, error), "equal_to": None}
    found = {**checked(draft), "equal_to": None}
    try:
        known = client is not None or actor.principal is not None  # optional for an operator
        client_id = owner(actor=actor, name=client).id if known else None
        ids = None if names is None else Resolver(actor, client_id or 0).stream_ids(names)
    except EventHubError as error:
        return {**found, "mistake": error.problem()}
    warnings = type_warnings(actor.zone_id, draft.filter)
    warnings += [] if ids is None else stream_warnings(draft.filter, ids)
    found["warnings"] = [*found["warnings"], *warnings]
    if client_id is not None and ids is not None:
        digest = draft.filter.digest(client_id, ids)
        same = RegistrationVersion.objects.filter(CURRENT, digest=digest)
        found["equal_to"] = same.aggregate(first=Min("registration"))["first"]
        if found["equal_to"] is not None:
            found["warnings"] = [*found["warnings"], "equal_to"]
    return found


def explain_draft(*, actor: Actor, body: Mapping[str, Any]) -> dict[str, Any]:
    """Explain a draft on an event in the body, or on a stored one (`stream` and `sequence`). Raises
    errors of filters, of emitting an event and of reading one.
    """
    require_known(body, _EXPLAINED)
    draft = parse_draft(body)
    mask = _bits(actor, mask_of(body))
    if body.get("event") is not None:
        if body.get("stream") is not None or body.get("sequence") is not None:
            raise InvalidField("Give an `event`, or `stream` and `sequence`.", field="event")
        subject = _given(actor, body["event"], reads_data=draft.filter.read().reads_data)
    else:
        stream = stream_of(body)
        sequence = number_of(body.get("sequence"), "sequence", "A sequence")
        if sequence is None:
            raise MissingField("Give an `event`, or `stream` and `sequence`.", field="sequence")
        subject = _stored(actor, stream, sequence)
    found: list[DeliveryCondition] = []
    if mask is not None:
        found.append(channel_condition(mask, subject.evaluated))
    own = actor.principal
    if own is None:
        found += expiry_condition(subject.evaluated)
    else:
        found += audience_conditions(own.client, own.groups, subject.evaluated)
    return _explained(actor, draft.filter, subject, found)


def explain_registration(*, actor: Actor, id: int, stream: str, sequence: int) -> dict[str, Any]:
    """Explain a registration on a stored event: the version that applied to it, else the current
    one. Raises UnknownRegistration, InvalidField for a stream that the registration does not name,
    and errors of reading.
    """
    if not list_registrations(actor=actor, ids=[id]):
        raise UnknownRegistration(field="registration")
    subject = _stored(actor, stream, sequence)
    [known] = statements.streams_by_name(raw_connection(), actor.zone_id, [stream])
    selection = ExplainScope(actor.zone_id, scope(actor=actor), known.id, sequence)
    version = next(
        applicable_versions(read_statuses_sync(raw_connection(), selection, [id]), sequence), None
    )
    if version is None:
        message = "The registration does not name this stream, so it matches none of its events."
        raise InvalidField(message, field="stream")
    filter = stored_filter(version.language, version.filter_json)
    zone = actor.zone if stream == SYSTEM else None
    found = _explained(actor, filter, subject, conditions_of(version, zone, subject.evaluated))
    bounds = {"from": version.since, "until": version.until}
    return {"registration": {**version_json(version), **bounds}, **found}


def _explained(
    actor: Actor, filter: FilterSource, subject: EventToExplain, conditions: list[DeliveryCondition]
) -> dict[str, Any]:
    event = subject.evaluated.event
    hierarchy = lineage_of(zone_id=actor.zone_id, domain=event.domain, type=event.type).hierarchy
    tree = explain(filter.read().parsed.node, event, hierarchy)
    return {
        "matches": tree.held and all(one.held for one in conditions),
        "held": tree.held,
        "language": filter.language,
        "filter": filter.source,
        "tree": tree.json(),
        "conditions": [one._asdict() for one in conditions],
        "event": subject.stored,
    }


def _given(actor: Actor, given: Any, *, reads_data: bool) -> EventToExplain:
    """Return the event as it would be stored if the actor emitted it, into a stream with the policy
    `filterable_data` if the filter reads `data`.
    """
    if not isinstance(given, dict):
        raise InvalidField("An event is an object.", field="event")
    client = "" if actor.principal is None else actor.principal.client
    try:
        [event] = from_objects([given])
        mask = _bits(actor, event_mask(event))
        payload = stored_bytes(
            event, client=client, mask=mask or DEFAULT_MASK, filterable_data=reads_data
        )
    except EventHubError as error:
        error.index = None
        error.field = f"event.{error.field}" if error.field else "event"
        raise
    at_us = SystemClock().now_us()
    evaluated = EvaluatedEvent(protobuf_codec.decode(payload), mask or DEFAULT_MASK, 0, at_us)
    return EventToExplain(evaluated, None)


def _stored(actor: Actor, name: str, sequence: int) -> EventToExplain:
    row, stored = find_stored(actor=actor, name=name, sequence=sequence)
    evaluated = EvaluatedEvent(stored.event, stored.mask, stored.sequence, stored.appended_at_us)
    position = {"stream": row.name, **stored.cursor._asdict()}
    position["appended_at"] = time_text(stored.appended_at_us)
    return EventToExplain(evaluated, position)


def _bits(actor: Actor, mask: int | list[str] | None) -> int | None:
    """Return the bits of a mask, or of channels by name. Raises UnknownChannel."""
    if isinstance(mask, list):
        return channel_mask(zone_id=actor.zone_id, channels=mask)
    return mask
