"""The event that a timer appends when it fires. Plain module."""

from datetime import UTC, datetime
from typing import Any, NamedTuple

from eventhub.event import protobuf_codec
from eventhub.event.envelope import DEFAULT_MASK, HUB_SOURCE, Event
from eventhub.eventlog.drafts import Draft
from registrations.timers.schedule import Fire

DOMAIN = "Time"  # READY 3.1
TICK = "Tick"


class FiredTimer(NamedTuple):
    """A timer that fires. `number`: of this fire, from 1."""

    id: int
    client: str
    registration_id: int | None
    stream_id: int
    handle: str | None  # None: a delayed event
    number: int
    payload: bytes | None
    token: bytes | None = None


def draft_of(timer: FiredTimer, fire: Fire) -> Draft:
    """Build the event: the one that the timer was created with, or Time::Tick for its client."""
    if timer.payload is not None:
        event = protobuf_codec.decode(timer.payload)
        return Draft(
            timer.stream_id,
            event.mask,
            timer.payload,
            key=event.key,
            tombstone=event.tombstone,
            token=timer.token or b"",
        )
    attributes: dict[str, Any] = {
        "handle": timer.handle,
        "timer": timer.id,
        "scheduled_at": utc_text(fire.at),
        "number": timer.number,
        "missed": fire.missed,
    }
    if timer.registration_id is not None:
        attributes["registration"] = timer.registration_id
    event = Event(
        DOMAIN,
        TICK,
        attributes,
        source=HUB_SOURCE,
        node="hub",
        destinations=(timer.client,),
    )
    return Draft(timer.stream_id, DEFAULT_MASK, protobuf_codec.encode(event))


def utc_text(found: datetime) -> str:
    """Return a time as RFC 3339 in UTC."""
    text = found.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds")
    return f"{text}Z"
