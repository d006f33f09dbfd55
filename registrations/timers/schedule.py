"""The times at which a timer fires: arithmetic on times with an offset. Plain module.

A repeating timer fires at fixed times, however late it fired before: with an interval at `start`,
`start` plus the interval, and so on; with a cron expression whenever the time of its zone matches.
A time that daylight saving skips counts as the first moment after the gap, and of a time that
occurs twice only the first counts, except for expressions with `*` as minute or hour, which match
every such minute (as in Debian's cron).
"""

from collections.abc import Iterator, Set
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import islice
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from eventhub.base import limits
from eventhub.base.errors import InvalidField, MissingField

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_ONE_OF = ("at", "after_s", "every_s", "cron")
_NEEDS = {
    "from": ("after_s",),
    "start": ("every_s", "cron"),
    "end": ("every_s", "cron"),
    "timezone": ("cron",),
}


class UnreadableSchedule(Exception):
    """This machine does not know the time zone any more, or the expression."""


class Schedule(NamedTuple):
    """When a timer fires: once `at`, `every_s` seconds from `start` on, or by `cron`."""

    at: datetime | None = None
    every_s: int | None = None
    start: datetime | None = None  # always given with `every_s`
    end: datetime | None = None  # itself included
    cron: str | None = None
    timezone: str | None = None


class Fire(NamedTuple):
    """A fire that is due. `at`: the latest time for which it fires; `missed`: how many earlier ones
    it stands for; `next_at`: the next time, None after the last one.
    """

    at: datetime
    missed: int
    next_at: datetime | None


def moment(time_us: int) -> datetime:
    """Return the time that is so many microseconds after 1970 in UTC."""
    return _EPOCH + timedelta(microseconds=time_us)


def schedule_of(fields: dict[str, Any], now: datetime) -> Schedule:
    """Return the schedule that a request describes. Raises MissingField, InvalidField."""
    given = [name for name in _ONE_OF if fields.get(name) is not None]
    if len(given) != 1:
        kind = InvalidField if given else MissingField
        message = "Give one of `at`, `after_s`, `every_s` and `cron`."
        raise kind(message, field=given[1] if given else "at")
    for name, needed in _NEEDS.items():
        if fields.get(name) is not None and given[0] not in needed:
            raise InvalidField(
                f"`{name}` is given with {' or '.join(f'`{one}`' for one in needed)}.", field=name
            )
    for name in ("at", "from", "start", "end"):
        if fields.get(name) is not None:
            _require_near(fields[name], now, field=name)
    if "at" in given:
        return Schedule(at=fields["at"].astimezone(UTC))
    if "after_s" in given:
        base = fields.get("from") or now
        return Schedule(at=base.astimezone(UTC) + timedelta(seconds=fields["after_s"]))
    start, end = fields.get("start"), fields.get("end")
    if "every_s" in given:
        every_s = fields["every_s"]
        found = Schedule(every_s=every_s, start=start or now + timedelta(seconds=every_s), end=end)
    else:
        zone = fields.get("timezone") or "UTC"
        _require_cron(fields["cron"], zone, now)
        found = Schedule(start=start, end=end, cron=fields["cron"], timezone=zone)
    return _in_utc(found)


def next_time(schedule: Schedule, after: datetime) -> datetime | None:
    """Return the first time of the schedule after a time, in UTC; None: there is none."""
    return next(times(schedule, after), None)


def times(schedule: Schedule, after: datetime) -> Iterator[datetime]:
    """Yield the times of the schedule after a time, ascending, in UTC. Raises
    UnreadableSchedule.
    """
    if schedule.at is not None:
        if schedule.at > after:
            yield schedule.at
        return
    found = _intervals if schedule.every_s is not None else _cron_times
    for one in found(schedule, after):
        if schedule.end is not None and one > schedule.end:
            return
        yield one


def first_time(schedule: Schedule, now: datetime) -> datetime | None:
    """Return the first time for which a new timer fires: a single one may be in the past."""
    return schedule.at or next_time(schedule, now - _MICROSECOND)


def upcoming(schedule: Schedule, first: datetime, count: int) -> list[datetime]:
    """Return at most `count` times of the schedule from `first` on."""
    return [first, *islice(times(schedule, first), count - 1)]


def fire(schedule: Schedule, due: datetime, now: datetime) -> Fire:
    """Return what happens at `now` to a timer that is due since `due`. All times of the schedule
    until now are one fire, for the latest of them; those of a cron expression are counted up to
    TIMER_MISSED_COUNTED_MAX.
    """
    if schedule.every_s is not None:
        interval = timedelta(seconds=schedule.every_s)
        until = now if schedule.end is None else min(now, schedule.end)
        missed = max((until - due) // interval, 0)
        latest = due + missed * interval
        return Fire(latest, missed, next_time(schedule, latest))
    if schedule.at is not None:
        return Fire(due, 0, None)
    latest, missed = due, 0
    for one in times(schedule, due):
        if one > now:
            return Fire(latest, missed, one)
        if missed == limits.TIMER_MISSED_COUNTED_MAX:
            return Fire(latest, missed, next_time(schedule, now))
        latest, missed = one, missed + 1
    return Fire(latest, missed, None)


def _intervals(schedule: Schedule, after: datetime) -> Iterator[datetime]:
    assert schedule.start is not None and schedule.every_s is not None  # noqa: S101 - typing
    interval = timedelta(seconds=schedule.every_s)
    passed = max((after - schedule.start) // interval + 1, 0)
    one = schedule.start + passed * interval
    while True:
        yield one
        one += interval


def _cron_times(schedule: Schedule, after: datetime) -> Iterator[datetime]:
    assert schedule.cron is not None and schedule.timezone is not None  # noqa: S101 - typing
    if schedule.start is not None:
        after = max(after, schedule.start - _MICROSECOND)
    try:
        matching = CronSim(schedule.cron, after.astimezone(_zone(schedule.timezone)))
    except (CronSimError, LookupError, ValueError, OSError) as error:
        raise UnreadableSchedule(str(error)) from error
    for one in matching:
        found = one.astimezone(UTC)
        if found > after:  # not the second occurrence of a time
            after = found
            yield found


def _zone(name: str) -> Any:
    """Return a time zone; UTC as the one for which no change of clocks is looked for. Raises what
    ZoneInfo raises.
    """
    return UTC if name == "UTC" else ZoneInfo(name)


@cache
def _zone_names() -> Set[str]:
    """Return the names of time zones, without those that each machine defines for itself."""
    return available_timezones() - {"localtime", "Factory"}


def _require_cron(text: str, zone: str, now: datetime) -> None:
    if zone not in _zone_names():
        raise InvalidField("This must be a time zone such as Europe/Berlin.", field="timezone")
    tz = _zone(zone)
    try:
        if len(text.split()) != 5:
            raise CronSimError("Wrong number of fields")
        never = next(CronSim(text, now.astimezone(tz)), None) is None
    except CronSimError as error:
        message = (
            f"{error}; write minute, hour, day of month, month and day of week, such as"
            " `0 8 * * MON-FRI`."
        )
        raise InvalidField(message, field="cron") from None
    if never:
        raise InvalidField("No time matches this expression.", field="cron")


def _require_near(found: datetime, now: datetime, *, field: str) -> None:
    if abs((found - now).total_seconds()) > limits.TIMER_AHEAD_S_MAX:
        message = "This must be within ten years from now."
        raise InvalidField(message, field=field)


def _in_utc(found: Schedule) -> Schedule:
    start, end = (one and one.astimezone(UTC) for one in (found.start, found.end))
    return found._replace(start=start, end=end)
