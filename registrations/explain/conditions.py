"""How a registration, or a draft of one, stands to one event apart from its filter: what else has a
say in whether its client is told. Plain module.
"""

from collections.abc import Iterable, Iterator
from typing import Annotated, Literal, NamedTuple, TypedDict

from msgspec import Meta

from eventhub.event.audience import may_see
from eventhub.event.envelope import Event
from eventhub.event.json_codec import time_text
from eventhub.event.json_types import Int64

# what has a say beside the filter
ConditionName = Literal[
    "channel_condition",
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
    """One thing that must be so beside the filter, whether it is, and why."""

    name: ConditionName
    held: bool
    why: Annotated[str, Meta(description="In words.")]


class VersionJson(TypedDict):
    """Which registration that is, in answers."""

    id: Int64
    client: str
    version: Annotated[int, Meta(description="That held for the event, or the current one.")]
    current: bool
    endpoint: Int64 | None
    group: str | None


class DeliveryCondition(NamedTuple):
    """One thing that must be so beside the filter, whether it is, and why."""

    name: ConditionName
    held: bool
    why: str

    def json(self) -> ConditionJson:
        return {"name": self.name, "held": self.held, "why": self.why}


class VersionStatus(NamedTuple):
    """A version of a registration, and how it stands to an event of a stream."""

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
    suspended: bool  # by itself
    group: str | None
    group_suspended: bool  # for this event
    streams: list[str]  # by name

    def holds(self, sequence: int) -> bool:
        """True if the event lies within the bounds of the version."""
        return self.since < sequence and (self.until is None or sequence <= self.until)


class EvaluatedEvent(NamedTuple):
    """An event and when it was appended; of one that is in no stream, when one asks."""

    event: Event
    mask: int
    sequence: int  # 0: it is in no stream
    at_us: int


def applicable_versions(
    versions: Iterable[VersionStatus], sequence: int
) -> Iterator[VersionStatus]:
    """Of each registration the version that held for the event, else the current one. In one
    order, by registration.
    """
    best: VersionStatus | None = None
    for version in versions:
        if best is not None and best.registration != version.registration:
            yield best
            best = None
        if best is None or not best.holds(sequence):
            best = version
    if best is not None:
        yield best


def conditions_of(
    version: VersionStatus, zone: str | None, evaluated: EvaluatedEvent
) -> list[DeliveryCondition]:
    """All of a registration's, those that hold too. `zone`: on `system`, whose events alone it is
    told beside those of the whole hub; else None.
    """
    sequence = evaluated.sequence
    begun = version.since < sequence
    over = version.until is not None and sequence > version.until
    state = "is" if version.suspended else "is not"
    found = [
        DeliveryCondition("from", begun, f"version {version.number} matches after {version.since}"),
        DeliveryCondition(
            "until",
            not over,
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
    """Who may be told of the event, and until when."""
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
    """Nothing for an event without an end."""
    expires_at_us = evaluated.event.expires_at_us
    if not expires_at_us:
        return []
    held = expires_at_us > evaluated.at_us
    time = time_text(expires_at_us)
    why = f"the event is told until {time}" if held else f"the event was over at {time}"
    return [DeliveryCondition("expired", held, why)]


def channel_condition(mask: int, evaluated: EvaluatedEvent) -> DeliveryCondition:
    """Whether a listen of these channel_condition is told."""
    common = mask & evaluated.mask
    why = f"the event is on {_bits(evaluated.mask)}, asked for {_bits(mask)}"
    return DeliveryCondition("channel_condition", common != 0, why)


def version_json(version: VersionStatus) -> VersionJson:
    """Which registration that is, in answers."""
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


def _bits(mask: int) -> str:
    """The channel_condition of a mask by their numbers."""
    found = [str(bit) for bit in range(64) if mask >> bit & 1]
    if len(found) == 64:
        return "all channel_condition"
    return (
        f"channel {found[0]}"
        if len(found) == 1
        else f"channel_condition {', '.join(found) or 'none'}"
    )
