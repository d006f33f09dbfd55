"""Reads of timers. Django module."""

from datetime import datetime
from typing import Any

import orjson
from django.db.models import F, QuerySet

from eventhub.access.principal import Actor
from eventhub.base import limits
from eventhub.event import protobuf_codec
from eventhub.event.json_codec import event_json
from registrations.scope import emitting_of
from registrations.timers import schedule
from registrations.timers.models import Timer
from registrations.timers.schedule import Schedule, UnreadableSchedule


def timers_of(*, actor: Actor) -> QuerySet[Timer]:
    """Select the timers that an actor may see: of its own client, on streams that it may emit to;
    or all timers of the zone for its managers.
    """
    found = Timer.objects.annotate(client_name=F("client__name"), stream_name=F("stream__name"))
    return emitting_of(found, actor=actor)


def schedule_of(timer: Timer) -> Schedule:
    return Schedule(timer.at, timer.every_s, timer.start, timer.end, timer.cron, timer.timezone)


def upcoming(timer: Timer) -> list[datetime]:
    """Return the next times for which a timer fires, TIMER_UPCOMING at most; none while it is
    suspended, one if the others cannot be computed on this machine.
    """
    if timer.suspended:
        return []
    try:
        return schedule.upcoming(schedule_of(timer), timer.next_at, limits.TIMER_UPCOMING)
    except UnreadableSchedule:
        return [timer.next_at]


def following(timer: Timer, now: datetime) -> datetime | None:
    """Return the first time of a repeating timer after a time; None: it has ended. If it cannot be
    computed on this machine, return the time that the timer has.
    """
    try:
        return schedule.next_time(schedule_of(timer), now)
    except UnreadableSchedule:
        return timer.next_at


def event_of(timer: Timer) -> dict[str, Any] | None:
    """Return the JSON of the event that a timer emits; None: Time::Tick."""
    if timer.payload is None:
        return None
    event: dict[str, Any] = orjson.loads(event_json(protobuf_codec.decode(bytes(timer.payload))))
    return event
