"""What of a zone becomes an event: the clients that connect, and the API calls. Django module."""

from typing import Any

from django.db import transaction

from eventhub.access.grants import PRESENCE, TRACES
from eventhub.access.models import Zone
from eventhub.access.principal import Actor
from eventhub.accounts.services import lock_zone, require_zone_not_deleting
from eventhub.api.announcements import announce, raw_connection
from eventhub.base import limits
from eventhub.monitoring.heartbeat import SQL
from eventhub.streams.services import hub_stream

_POLICIES: dict[str, dict[str, Any]] = {
    PRESENCE: {
        "durability": "async",
        "keyed": True,
        "retain_events": limits.PRESENCE_EVENTS_RETAINED,
        "segment_events_max": limits.PRESENCE_EVENTS_RETAINED // 10,
    },
    TRACES: {
        "durability": "async",
        "retain_events": limits.TRACE_EVENTS_RETAINED,
        "segment_events_max": limits.TRACE_EVENTS_RETAINED // 10,
    },
}


def change_monitoring(
    *, actor: Actor, presence: bool | None = None, traces: bool | None = None
) -> Zone:
    """Switch presence and traces of the actor's zone on or off; None: unchanged. A stream is
    created when it is needed first. Raises ZoneDeleting, StreamDeleting.
    """
    with transaction.atomic():
        zone = lock_zone(zone_id=actor.zone_id)
        before = (zone.presence, zone.traces)
        zone.presence = zone.presence if presence is None else presence
        zone.traces = zone.traces if traces is None else traces
        if before == (zone.presence, zone.traces):
            return zone
        require_zone_not_deleting(zone)
        for name, is_on in ((PRESENCE, zone.presence), (TRACES, zone.traces)):
            if is_on:
                policy = _POLICIES[name]
                hub_stream(zone_id=zone.pk, zone=zone.name, name=name, policy=policy)
        zone.save(update_fields=["presence", "traces"])
        announce(
            zone=zone.name,
            type="zone.monitoring.changed",
            attributes={"presence": zone.presence, "traces": zone.traces},
        )
        transaction.on_commit(lambda: raw_connection().execute(SQL["notify"]), robust=True)
    return zone
