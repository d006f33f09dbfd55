"""Judges what was found of each part of the hub: well, or not and why. Plain module.

Reasons name no zone, stream, client or endpoint: whoever holds a key of any zone may read them.
"""

from typing import NamedTuple

from delivery.health.facts import Facts
from eventhub.base import limits
from eventhub.http.health import Component, Status

_SECOND = 1_000_000


class Seen(NamedTuple):
    """When a part was seen last, and how long it may be silent."""

    at_us: int | None
    silent_s: float


def judged(facts: Facts, *, archive: bool) -> list[Component]:
    """The components that the database tells of. `archive`: this hub has one."""
    return [
        _forwarders(facts),
        _workers(facts),
        _beat(facts),
        _deliveries(facts),
        _archiver(facts) if archive else Component("archiver", "off"),
        _indexer(facts),
    ]


def unknown(*, since_us: int | None) -> list[Component]:
    """The same components while the database does not answer."""
    names = ("forwarders", "workers", "beat", "deliveries", "archiver", "indexer")
    reason = "The database could not be asked."
    return [Component(name, "unknown", reason, since_us) for name in names]


def _forwarders(facts: Facts) -> Component:
    if not facts.forwarders:
        reason = "No forwarder is alive: events are not matched for callbacks."
        seen = Seen(facts.forwarder_us, limits.HEALTH_SILENT_S_MAX)
        return _silent("forwarders", facts, seen, reason)
    if facts.stranded:
        reason = f"{facts.stranded:,} streams with callbacks are held by no forwarder."
        return Component("forwarders", "degraded", reason, facts.stranded_us)
    return Component("forwarders", "ok")


def _workers(facts: Facts) -> Component:
    if facts.workers:
        return Component("workers", "ok")
    reason = (
        "No worker is alive: callbacks are not delivered, and periodic tasks and jobs do not run."
    )
    return _silent("workers", facts, Seen(facts.worker_us, limits.HEALTH_SILENT_S_MAX), reason)


def _beat(facts: Facts) -> Component:
    seen = Seen(facts.beat_us, limits.HEALTH_TIMETABLE_S_MAX)
    reason = "The timetable (beat) is not alive: no periodic task is started."
    return _silent("beat", facts, seen, reason) if _is_silent(facts, seen) else _ok("beat")


def _deliveries(facts: Facts) -> Component:
    if not facts.overdue:
        return Component("deliveries", "unknown", "Due deliveries could not be read in time.")
    if facts.overdue_us is None:
        return _ok("deliveries")
    waited = _seconds(facts.now_us - facts.overdue_us)
    reason = f"The oldest due delivery has waited {waited}, and no worker has claimed it."
    return Component("deliveries", "degraded", reason, facts.overdue_us)


def _archiver(facts: Facts) -> Component:
    seen = Seen(facts.archiver_us, limits.HEALTH_TASK_S_MAX)
    if facts.unarchivable:
        reason = f"{facts.unarchivable:,} segments could not be archived: {facts.unarchivable_code}"
        return Component("archiver", "degraded", f"{reason}.", facts.unarchived_us)
    if _is_silent(facts, seen):
        return _silent("archiver", facts, seen, "The archiver is not started by any worker.")
    if facts.unarchived_us is not None:
        waited_us = facts.now_us - facts.unarchived_us
        if waited_us > limits.HEALTH_ARCHIVE_S_MAX * _SECOND:
            reason = f"The oldest sealed segment has waited {_seconds(waited_us)} for the archive."
            return Component("archiver", "degraded", reason, facts.unarchived_us)
    return _ok("archiver")


def _indexer(facts: Facts) -> Component:
    seen = Seen(facts.indexer_us, limits.HEALTH_TASK_S_MAX)
    if facts.unbuilt:
        reason = f"{facts.unbuilt:,} match indexes could not be built: {facts.unbuilt_code}."
        return Component("indexer", "degraded", reason, facts.unbuilt_us)
    if _is_silent(facts, seen):
        return _silent("indexer", facts, seen, "Builds of match indexes are started by no worker.")
    if facts.asked_us is not None:
        waited_us = facts.now_us - facts.asked_us
        if waited_us > limits.HEALTH_INDEX_S_MAX * _SECOND:
            reason = f"A requested match index has waited {_seconds(waited_us)} for its build."
            return Component("indexer", "degraded", reason, facts.asked_us)
    return _ok("indexer")


def _ok(name: str) -> Component:
    return Component(name, "ok")


def _is_silent(facts: Facts, seen: Seen) -> bool:
    """Also if it was seen in the future: before the clock stepped back."""
    return seen.at_us is None or abs(facts.now_us - seen.at_us) > seen.silent_s * _SECOND


def _silent(name: str, facts: Facts, seen: Seen, reason: str) -> Component:
    """A part that should be heard and is not; shortly after the hub's start it is still starting,
    unless it was seen since.
    """
    booted_us = facts.booted_at_us
    status: Status = "degraded"
    if booted_us is not None and (seen.at_us is None or seen.at_us < booted_us):
        started = facts.now_us - booted_us <= seen.silent_s * _SECOND
        status = "starting" if started else "degraded"
    return Component(name, status, reason, seen.at_us)


def _seconds(duration_us: int) -> str:
    return f"{duration_us // _SECOND:,} s"
