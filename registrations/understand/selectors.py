"""Checks of drafts, and explanations of filters on one event, as far as the actor may see it."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from eventhub import limits
from eventhub.access.actor import Actor
from eventhub.access.grants import SYSTEM
from eventhub.access.names import valid_name
from eventhub.access.selectors import list_channels
from eventhub.access.services import DEFAULT_CHANNEL
from eventhub.access.system import raw_connection
from eventhub.clock import SystemClock
from eventhub.errors import (
    EventHubError,
    InvalidField,
    MissingField,
    UnknownChannel,
    UnknownStream,
)
from eventhub.event import protobuf_codec
from eventhub.event.envelope import DEFAULT_MASK, Event
from eventhub.event.inbound import event_mask, from_objects, stored_bytes
from eventhub.event.json_codec import time_text
from eventhub.eventlog.rows import scalars
from eventhub.eventlog.stored import Cursor, Stored
from eventhub.eventlog.streams import StreamRow
from eventhub.streams.selectors import find_stored, place_of
from eventhub.types.selectors import lineage_of
from registrations import rows
from registrations.errors import UnknownRegistration
from registrations.filters import FILTER_FIELDS, stored_filter
from registrations.lang.evaluate import Kin
from registrations.lang.explain import explain
from registrations.owners import owner, scope
from registrations.requests import name_of
from registrations.selectors import list_registrations
from registrations.understand.drafts import (
    Draft,
    checked,
    draft_of,
    mistaken,
    parse_draft,
    require_known,
)
from registrations.understand.rows import SQL, Asked, standing_now
from registrations.understand.standing import (
    Circumstance,
    Moment,
    Standing,
    channels,
    chosen,
    circumstances_of,
    expiry,
    seen_by,
    standing_json,
)
from registrations.understand.wanted import mask_of, stream_of

_CHECKED = frozenset((*FILTER_FIELDS, "streams", "client"))
_EXPLAINED = frozenset((*FILTER_FIELDS, "event", "stream", "sequence", "mask", "channels"))


class Seen(NamedTuple):
    """An event to be explained, and where it is stored, if it is."""

    moment: Moment
    stored: dict[str, Any] | None
    place: Cursor | None  # where its stream stands


class Explanation(NamedTuple):
    """An answer, and where the stream that it is about stands."""

    json: dict[str, Any]
    place: Cursor | None


def check(*, actor: Actor, body: Mapping[str, Any]) -> dict[str, Any]:
    """What registering would say. A mistake is part of the answer. What is no part of a filter is
    refused: UnknownField, and InvalidField or InvalidName for a `client` or `streams` that are no
    names.
    """
    require_known(body, _CHECKED)
    client = name_of(body.get("client"), "client")
    names = _stream_names(body.get("streams"))
    try:
        draft = parse_draft(body)
    except EventHubError as error:
        return {**mistaken(body, error), "equal_to": None}
    found = {**checked(draft), "equal_to": None}
    try:
        client_id = _client_id(actor, client)
        ids = None if names is None else _stream_ids(actor, names)
    except EventHubError as error:
        return {**found, "mistake": error.problem()}
    if client_id is not None and ids is not None:
        digest = draft.filter.digest(client_id, ids)
        equal_to = scalars(raw_connection()).execute(SQL["equal"], (digest,)).fetchone()
        if equal_to is not None:
            found["equal_to"] = equal_to
            found["warnings"] = [*found["warnings"], "equal_to"]
    return found


def explain_draft(*, actor: Actor, body: Mapping[str, Any]) -> Explanation:
    """A draft on an event in the body, or on one that is stored: `stream` and `sequence`. Raises
    what filters raise, what the emit door raises of an event, and what reading one raises.
    """
    require_known(body, _EXPLAINED)
    draft = parse_draft(body)
    mask = _bits(actor, mask_of(body))
    if body.get("event") is not None:
        if body.get("stream") is not None or body.get("sequence") is not None:
            raise InvalidField("Give an `event`, or `stream` and `sequence`.", field="event")
        seen = _made(actor, body["event"])
    else:
        seen = _stored(actor, stream_of(body), _sequence(body))
    found: list[Circumstance] = []
    if mask is not None:
        found.append(channels(mask, seen.moment))
    own = actor.principal
    if own is None:
        found += expiry(seen.moment)
    else:
        found += seen_by(own.client, own.groups, seen.moment)
    return _explained(actor, draft, seen, found)


def explain_registration(*, actor: Actor, id: int, stream: str, sequence: int) -> Explanation:
    """A registration on a stored event: the version that held then, else the current one. Raises
    UnknownRegistration, InvalidField for a stream that it does not name, and what reading raises.
    """
    if not list_registrations(actor=actor, ids=[id]):
        raise UnknownRegistration(field="registration")
    seen = _stored(actor, stream, sequence)
    [known] = rows.streams_by_name(raw_connection(), actor.zone_id, [stream])
    asked = Asked(actor.zone_id, scope(actor=actor), known.id, sequence)
    found = next(chosen(standing_now(raw_connection(), asked, [id]), sequence), None)
    if found is None:
        message = "The registration does not name this stream, so nothing of it is matched."
        raise InvalidField(message, field="stream")
    return _of_version(actor, found, stream, seen)


def _of_version(actor: Actor, version: Standing, stream: str, seen: Seen) -> Explanation:
    draft = draft_of(stored_filter(version.language, version.filter_json))
    zone = actor.zone if stream == SYSTEM else None
    found = _explained(actor, draft, seen, circumstances_of(version, zone, seen.moment))
    bounds = {"from": version.since, "until": version.until}
    registration = {**standing_json(version), **bounds}
    return found._replace(json={"registration": registration, **found.json})


def _explained(
    actor: Actor, draft: Draft, seen: Seen, circumstances: list[Circumstance]
) -> Explanation:
    event = seen.moment.event
    tree = explain(draft.node, event, _kin(actor, event))
    body = {
        "matches": tree.held and all(one.held for one in circumstances),
        "held": tree.held,
        "language": draft.filter.language,
        "filter": draft.filter.source,
        "tree": tree.json(),
        "circumstances": [one._asdict() for one in circumstances],
        "event": seen.stored,
    }
    return Explanation(body, seen.place)


def _client_id(actor: Actor, name: str | None) -> int | None:
    """Whose it would be; None for an operator who does not say."""
    if name is None and actor.principal is None:
        return None
    return owner(actor=actor, name=name).id


def _stream_names(streams: Any) -> list[str] | None:
    if streams is None:
        return None
    if not isinstance(streams, list) or not all(isinstance(name, str) for name in streams):
        raise InvalidField("`streams` is a list of names, at least one.", field="streams")
    if not 0 < len(streams) <= limits.STREAMS_PER_REGISTRATION_MAX:
        raise InvalidField(
            f"A registration names 1 to {limits.STREAMS_PER_REGISTRATION_MAX} streams.",
            field="streams",
        )
    return [valid_name(name, field=f"streams.{at}") for at, name in enumerate(streams)]


def _stream_ids(actor: Actor, streams: list[str]) -> list[int]:
    """As a registration names them; Forbidden before UnknownStream."""
    for at, name in enumerate(streams):
        actor.require_listen(name, field=f"streams.{at}")
    known = rows.streams_by_name(raw_connection(), actor.zone_id, streams)
    ids = {stream.name: stream.id for stream in known}
    for at, name in enumerate(streams):
        if name not in ids:
            raise UnknownStream(stream=name, field=f"streams.{at}")
    return list(ids.values())


def _made(actor: Actor, given: Any) -> Seen:
    """An event as it would be stored if the actor emitted it."""
    if not isinstance(given, dict):
        raise InvalidField("An event is an object.", field="event")
    client = "" if actor.principal is None else actor.principal.client
    try:
        [event] = from_objects([given])
        mask = _bits(actor, event_mask(event))
        payload = stored_bytes(event, client=client, mask=mask or DEFAULT_MASK)
    except EventHubError as error:
        error.index = None
        error.field = f"event.{error.field}" if error.field else "event"
        raise
    at_us = SystemClock().now_us()
    return Seen(Moment(protobuf_codec.decode(payload), mask or DEFAULT_MASK, 0, at_us), None, None)


def _stored(actor: Actor, name: str, sequence: int) -> Seen:
    row, stored = find_stored(actor=actor, name=name, sequence=sequence)
    moment = Moment(stored.event, stored.mask, stored.sequence, stored.appended_at_us)
    return Seen(moment, _stored_json(row, stored), place_of(row))


def _stored_json(row: StreamRow, stored: Stored) -> dict[str, Any]:
    place = {"stream": row.name, **stored.cursor._asdict()}
    return {**place, "appended_at": time_text(stored.appended_at_us)}


def _bits(actor: Actor, mask: int | list[str] | None) -> int | None:
    """The bits of a mask, or of channels by name. Raises UnknownChannel."""
    if not isinstance(mask, list):
        return mask
    bits = {channel.name: channel.bit for channel in list_channels(zone_id=actor.zone_id)}
    bits[DEFAULT_CHANNEL] = 63
    found = 0
    for name in mask:
        if name not in bits:
            raise UnknownChannel(channel=name[: limits.NAME_CHARS_MAX], field="channels")
        found |= 1 << bits[name]
    return found


def _kin(actor: Actor, event: Event) -> Kin:
    return lineage_of(zone_id=actor.zone_id, domain=event.domain, type=event.type).kin


def _sequence(body: Mapping[str, Any]) -> int:
    sequence = body.get("sequence")
    if sequence is None:
        raise MissingField("Give an `event`, or `stream` and `sequence`.", field="sequence")
    if isinstance(sequence, bool) or not isinstance(sequence, int) or not 0 < sequence < 1 << 63:
        raise InvalidField("A sequence is a number from 1 on.", field="sequence")
    return sequence
