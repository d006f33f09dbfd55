"""The rules that derive the health of each component, with a reason if it is not well. Plain
module.

Reasons name no zone, stream, client or endpoint, because a key of any zone may read them.
"""

from typing import NamedTuple

from delivery.health.facts import HealthFacts
from eventhub.base import limits
from eventhub.http.health import Component, Status

_SECOND = 1_000_000


class LastSeen(NamedTuple):
    """The last heartbeat of a component, and the longest allowed silence."""

    at_us: int | None
    silent_s: float


def components_of(facts: HealthFacts, *, archive: bool) -> list[Component]:
    """Return the components whose health the database shows. `archive`: the hub has an archive."""
    return [
        _forwarders(facts),
        _workers(facts),
        _beat(facts),
        _deliveries(facts),
        _archiver(facts) if archive else Component("archiver", "off"),
        _indexer(facts),
    ]


def unknown(*, since_us: int | None) -> list[Component]:
    """Return the same components while the database does not answer."""
    names = ("forwarders", "workers", "beat", "deliveries", "archiver", "indexer")
    reason = "The database could not be asked."
    return [Component(name, "unknown", reason, since_us) for name in names]


def _forwarders(facts: HealthFacts) -> Component:
    if not facts.forwarders:
        reason = "No forwarder is alive: events are not matched for callbacks."
        last_seen = LastSeen(facts.forwarder_us, limits.HEALTH_SILENT_S_MAX)
        return _silent("forwarders", facts, last_seen, reason)
    if facts.stranded or facts.stranded_groups:
        reason = f"{facts.stranded:,} streams with callbacks are held by no forwarder."
        if facts.stranded_groups:
            reason = (
                f"{facts.stranded:,} streams with callbacks and {facts.stranded_groups:,} pattern"
                " groups are held by no forwarder."
            )
        return Component("forwarders", "degraded", reason, facts.stranded_us)
    if facts.stopped_groups:
        reason = f"{facts.stopped_groups:,} pattern groups have stopped: their state is unreadable."
        return Component("forwarders", "degraded", reason)
    return Component("forwarders", "ok")


def _workers(facts: HealthFacts) -> Component:
    if facts.workers:
        return Component("workers", "ok")
    reason = (
        "No worker is alive: callbacks are not delivered, and periodic tasks and jobs do not run."
    )
    return _silent("workers", facts, LastSeen(facts.worker_us, limits.HEALTH_SILENT_S_MAX), reason)


def _beat(facts: HealthFacts) -> Component:
    last_seen = LastSeen(facts.beat_us, limits.HEALTH_TIMETABLE_S_MAX)
    reason = "The timetable (beat) is not alive: no periodic task is started."
    return (
        _silent("beat", facts, last_seen, reason) if _is_silent(facts, last_seen) else _ok("beat")
    )


def _deliveries(facts: HealthFacts) -> Component:
    if not facts.overdue:
        return Component("deliveries", "unknown", "Due deliveries could not be read in time.")
    if facts.overdue_us is None:
        return _ok("deliveries")
    waited = _seconds(facts.now_us - facts.overdue_us)
    reason = f"The oldest due delivery has waited {waited}, and no worker has claimed it."
    return Component("deliveries", "degraded", reason, facts.overdue_us)


def _archiver(facts: HealthFacts) -> Component:
    last_seen = LastSeen(facts.archiver_us, limits.HEALTH_TASK_S_MAX)
    if facts.unarchivable:
        reason = f"{facts.unarchivable:,} segments could not be archived: {facts.unarchivable_code}"
        return Component("archiver", "degraded", f"{reason}.", facts.unarchived_us)
    if _is_silent(facts, last_seen):
        return _silent("archiver", facts, last_seen, "The archiver is not started by any worker.")
    if facts.unarchived_us is not None:
        waited_us = facts.now_us - facts.unarchived_us
        if waited_us > limits.HEALTH_ARCHIVE_S_MAX * _SECOND:
            reason = f"The oldest sealed segment has waited {_seconds(waited_us)} for the archive."
            return Component("archiver", "degraded", reason, facts.unarchived_us)
    return _ok("archiver")


def _indexer(facts: HealthFacts) -> Component:
    last_seen = LastSeen(facts.indexer_us, limits.HEALTH_TASK_S_MAX)
    if facts.unbuilt:
        reason = f"{facts.unbuilt:,} match indexes could not be built: {facts.unbuilt_code}."
        return Component("indexer", "degraded", reason, facts.unbuilt_us)
    if _is_silent(facts, last_seen):
        return _silent(
            "indexer", facts, last_seen, "Builds of match indexes are started by no worker."
        )
    if facts.requested_us is not None:
        waited_us = facts.now_us - facts.requested_us
        if waited_us > limits.HEALTH_INDEX_S_MAX * _SECOND:
            reason = f"A requested match index has waited {_seconds(waited_us)} for its build."
            return Component("indexer", "degraded", reason, facts.requested_us)
    return _ok("indexer")


def _ok(name: str) -> Component:
    return Component(name, "ok")


def _is_silent(facts: HealthFacts, last_seen: LastSeen) -> bool:
    """Return True if a heartbeat is overdue, or in the future, from before a clock step."""
    return (
        last_seen.at_us is None
        or abs(facts.now_us - last_seen.at_us) > last_seen.silent_s * _SECOND
    )


def _silent(name: str, facts: HealthFacts, last_seen: LastSeen, reason: str) -> Component:
    """Return a component without a heartbeat. Shortly after the hub's start it is `starting`,
    unless there was a heartbeat since.
    """
    booted_us = facts.booted_at_us
    status: Status = "degraded"
    if booted_us is not None and (last_seen.at_us is None or last_seen.at_us < booted_us):
        is_starting = facts.now_us - booted_us <= last_seen.silent_s * _SECOND
        status = "starting" if is_starting else "degraded"
    return Component(name, status, reason, last_seen.at_us)


def _seconds(duration_us: int) -> str:
    return f"{duration_us // _SECOND:,} s"
