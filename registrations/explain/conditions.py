"""The conditions, in addition to the filter, under which an event is delivered for a registration
or a draft: bounds, suspensions, audience, expiry and so on. Plain module.
"""

from collections.abc import Iterable, Iterator
from typing import Annotated, Literal, NamedTuple, TypedDict

from msgspec import Meta

from eventhub.event.audience import may_see
from eventhub.event.envelope import Event
from eventhub.event.json_codec import time_text
from eventhub.event.json_types import Int64

ConditionName = Literal[
    "channels",
    "from",
    "until",
    "suspended",
    "group",
    "zone",
    "destinations",
    "audience",
    "expired",
]


class ConditionJson(TypedDict):
    """A condition in addition to the filter, whether it held, and why."""

    name: ConditionName
    held: bool
    why: Annotated[str, Meta(description="The reason in words.")]


class VersionJson(TypedDict):
    """A version of a registration, in answers."""

    id: Int64
    client: str
    version: Annotated[
        int, Meta(description="The version that applied to the event, else the current one.")
    ]
    current: bool
    endpoint: Int64 | None
    group: str | None


class DeliveryCondition(NamedTuple):
    """A condition in addition to the filter, whether it held, and why."""

    name: ConditionName
    held: bool
    why: str

    def json(self) -> ConditionJson:
        """Return the condition as JSON."""
        return {"name": self.name, "held": self.held, "why": self.why}


class VersionStatus(NamedTuple):
    """A version of a registration, and its status for an event of a stream."""

    registration: int
    client: str
    groups: list[str]  # of the client
    number: int
    endpoint_id: int | None
    language: str
    filter_json: str
    since: int  # exclusive, as the stream's sequence
    until: int | None  # inclusive; None: it has not ended
    current: bool
    suspended: bool  # itself, not its group
    group: str | None
    group_suspended: bool  # for this event
    streams: list[str]  # by name

    def applies_to(self, sequence: int) -> bool:
        """Return whether the event is within the bounds of the version."""
        return self.since < sequence and (self.until is None or sequence <= self.until)


class EvaluatedEvent(NamedTuple):
    """An event, stored or given in a request."""

    event: Event
    mask: int
    sequence: int  # 0: it is not stored
    at_us: int  # when it was appended, or the time of the request


def applicable_versions(
    versions: Iterable[VersionStatus], sequence: int
) -> Iterator[VersionStatus]:
    """Yield, for each registration, the version that applied to the event, else the current one.
    `versions` are ordered by registration.
    """
    best: VersionStatus | None = None
    for version in versions:
        if best is not None and best.registration != version.registration:
            yield best
            best = None
        if best is None or not best.applies_to(sequence):
            best = version
    if best is not None:
        yield best


def conditions_of(
    version: VersionStatus, zone: str | None, evaluated: EvaluatedEvent
) -> list[DeliveryCondition]:
    """Return all conditions of a registration, those that held and those that failed. `zone`: on
    `system`, the zone whose events it receives in addition to those of the whole hub; else None.
    """
    sequence = evaluated.sequence
    started = version.since < sequence
    ended = version.until is not None and sequence > version.until
    state = "is" if version.suspended else "is not"
    why = f"version {version.number} matches after {version.since}"
    found = [
        DeliveryCondition("from", started, why),
        DeliveryCondition(
            "until",
            not ended,
            "it has not ended" if version.until is None else f"it matches up to {version.until}",
        ),
        DeliveryCondition(
            "suspended", not version.suspended, f"the registration {state} suspended"
        ),
    ]
    if version.group is not None:
        state = "is" if version.group_suspended else "is not"
        why = f"its group {version.group} {state} suspended for this event"
        found.append(DeliveryCondition("group", not version.group_suspended, why))
    if zone is not None:
        found.append(_of_zone(evaluated.event, zone))
    return [*found, *audience_conditions(version.client, frozenset(version.groups), evaluated)]


def audience_conditions(
    client: str, groups: frozenset[str], evaluated: EvaluatedEvent
) -> list[DeliveryCondition]:
    """Return the conditions of the event's destinations, audience and expiry for a client."""
    event = evaluated.event
    found: list[DeliveryCondition] = []
    if event.destinations:
        held = may_see(event._replace(audience=()), client, groups)
        why = f"the event is for {', '.join(event.destinations)}; this is {client}"
        found.append(DeliveryCondition("destinations", held, why))
    if event.audience:
        held = may_see(event._replace(destinations=()), client, groups)
        own = ", ".join(sorted(groups)) or "none"
        why = f"the event is for the groups {', '.join(event.audience)}; {client} is in {own}"
        found.append(DeliveryCondition("audience", held, why))
    return [*found, *expiry_condition(evaluated)]


def expiry_condition(evaluated: EvaluatedEvent) -> list[DeliveryCondition]:
    """Return the condition of the event's expiry; empty if it does not expire."""
    expires_at_us = evaluated.event.expires_at_us
    if not expires_at_us:
        return []
    held = expires_at_us > evaluated.at_us
    time = time_text(expires_at_us)
    why = f"the event expires at {time}" if held else f"the event expired at {time}"
    return [DeliveryCondition("expired", held, why)]


def channel_condition(mask: int, evaluated: EvaluatedEvent) -> DeliveryCondition:
    """Return the condition of a listener's channel mask."""
    common = mask & evaluated.mask
    why = f"the event is on {_channels(evaluated.mask)}, requested: {_channels(mask)}"
    return DeliveryCondition("channels", common != 0, why)


def version_json(version: VersionStatus) -> VersionJson:
    """Return the version as JSON."""
    return {
        "id": version.registration,
        "client": version.client,
        "version": version.number,
        "current": version.current,
        "endpoint": version.endpoint_id,
        "group": version.group,
    }


def _of_zone(event: Event, zone: str) -> DeliveryCondition:
    of: object = event.attributes.get("zone")
    held = of is None or of == zone
    why = "the event is of the whole hub" if of is None else f"the event is of the zone {of}"
    return DeliveryCondition("zone", held, why)


def _channels(mask: int) -> str:
    """Describe the channels of a mask by their numbers."""
    found = [str(bit) for bit in range(64) if mask >> bit & 1]
    if len(found) == 64:
        return "all channels"
    return f"channel {found[0]}" if len(found) == 1 else f"channels {', '.join(found) or 'none'}"
