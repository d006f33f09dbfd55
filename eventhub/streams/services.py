"""Changes of streams, their policies and the hub's quota; each is announced in its transaction.
Django module.
"""

from collections.abc import Mapping
from typing import Any

import psycopg
from django.db import transaction

from eventhub.access.grants import HUB_STREAMS
from eventhub.access.models import Zone
from eventhub.accounts.services import require_zone_not_deleting
from eventhub.api.announcements import announce, raw_connection
from eventhub.api.if_match import require_unchanged
from eventhub.base import limits
from eventhub.base.broker import DELETE_DUE, request_task
from eventhub.base.errors import Forbidden, InvalidField
from eventhub.event.json_codec import time_text
from eventhub.eventlog import deletion, streams
from eventhub.eventlog.errors import DurabilityFixed, NotDeleting, OnHold, StreamDeleting
from eventhub.eventlog.resource_changes import Resource
from eventhub.eventlog.retention import storage
from eventhub.eventlog.streams import StreamPolicy, StreamRow
from eventhub.streams.errors import KeyedFixed

# the policies that a stream in memory cannot have, each with the reason
_NOT_TRANSIENT = {
    "keyed": "its state would be lost with its events",
    "restate": "none of its events survives a restart",
    "segment_events_max": "it has one segment, which lasts as long as its memory",
    "segment_bytes_max": "it has one segment, which lasts as long as its memory",
    "segment_age_s_max": "it has one segment, which lasts as long as its memory",
    "retain_age_s": "its events are dropped when newer ones need the memory",
    "on_lag": "its oldest events are dropped for new ones, also if a consumer needs them",
    "hold": "its events are not stored",
    "archive": "its events are not stored",
}
# the limits of its memory
_TRANSIENT_MAX = {
    "retain_events": limits.TRANSIENT_EVENTS_MAX,
    "retain_bytes": limits.TRANSIENT_BYTES_MAX,
}


def put_stream(
    *, zone_id: int, zone: str, name: str, policy: Mapping[str, Any], if_match: int | None = None
) -> tuple[StreamRow, bool]:
    """Create a stream or set the given fields of its policy; others stay, or get their defaults.
    Return it, and True if it is new. Idempotent. Raises Forbidden for a stream of the hub,
    DurabilityFixed, KeyedFixed, and InvalidField for fields that exclude each other.
    """
    if name in HUB_STREAMS:
        raise Forbidden(f"The stream `{name}` belongs to the hub; choose another name.")
    return _put(zone_id=zone_id, zone=zone, name=name, policy=policy, if_match=if_match)


def hub_stream(*, zone_id: int, zone: str, name: str, policy: Mapping[str, Any]) -> StreamRow:
    """Return a stream of the hub in a zone; create it with the policy if the zone has none."""
    found = streams.find_stream(raw_connection(), zone_id, name)
    return found or _put(zone_id=zone_id, zone=zone, name=name, policy=policy)[0]


def _put(
    *, zone_id: int, zone: str, name: str, policy: Mapping[str, Any], if_match: int | None = None
) -> tuple[StreamRow, bool]:
    connection = raw_connection()
    found = streams.find_stream(connection, zone_id, name)
    if found and if_match is None and _merged(found.policy, policy) == found.policy:
        return found, False
    resource = Resource("stream", zone_id, name)
    with transaction.atomic():
        streams.lock_system(connection)
        found = streams.find_stream(connection, zone_id, name)
        require_unchanged(resource, if_match, exists=found is not None)
        new_policy = _merged(found and found.policy, policy)
        if found and found.deletes_at_us is not None and new_policy != found.policy:
            raise StreamDeleting.of(name, found.deletes_at_us)
        if found is None:
            require_zone_not_deleting(Zone.objects.get(pk=zone_id))
            streams.create_stream(connection, zone_id, name, new_policy)
        elif new_policy == found.policy:
            return found, False
        else:
            streams.update_policy(connection, found.id, new_policy)
        announce(
            zone=zone,
            type="stream.changed" if found else "stream.created",
            attributes={"stream": name, **new_policy._asdict()},
            resource=resource,
        )
    return streams.get_stream(connection, zone_id, name), found is None


def schedule_deletion(
    *, zone_id: int, zone: str, name: str, grace_s: int | None, if_match: int | None = None
) -> StreamRow:
    """Schedule the deletion of a stream `grace_s` seconds from now; None: the default. Repeated
    with a time it is scheduled again, and announced again; without one it changes nothing. Raises
    UnknownStream, OnHold.
    """
    connection, resource = raw_connection(), Resource("stream", zone_id, name)
    with transaction.atomic():
        found = _locked(connection, resource, if_match)
        if found.policy.hold is not None:
            raise OnHold(hold=found.policy.hold)
        if found.deletes_at_us is not None and grace_s is None:
            return found
        grace_s = limits.DELETION_GRACE_S_DEFAULT if grace_s is None else grace_s
        deletion.schedule(connection, found.id, grace_s)
        scheduled = streams.get_stream(connection, zone_id, name)
        attributes = {"stream": name, "deletes_at": time_text(scheduled.deletes_at_us or 0)}
        announce(zone=zone, type=deletion.SCHEDULED, attributes=attributes, resource=resource)
    if grace_s == 0:
        request_task(DELETE_DUE)
    return scheduled


def withdraw_deletion(*, zone_id: int, zone: str, name: str) -> StreamRow:
    """Withdraw the scheduled deletion of a stream. Raises UnknownStream, NotDeleting."""
    connection, resource = raw_connection(), Resource("stream", zone_id, name)
    with transaction.atomic():
        found = _locked(connection, resource, None)
        if not deletion.withdraw(connection, found.id):
            raise NotDeleting(stream=name)
        announce(zone=zone, type=deletion.WITHDRAWN, attributes={"stream": name}, resource=resource)
    return streams.get_stream(connection, zone_id, name)


def _locked(
    connection: psycopg.Connection[Any], resource: Resource, if_match: int | None
) -> StreamRow:
    """Return the stream, which nothing changes before the end of the transaction. Raises Forbidden
    for a stream of the hub, UnknownStream, Changed.
    """
    if resource.name in HUB_STREAMS:
        raise Forbidden(f"The stream `{resource.name}` belongs to the hub and cannot be deleted.")
    streams.lock_system(connection)
    found = streams.get_stream(connection, resource.zone_id, resource.name)
    require_unchanged(resource, if_match)
    return found


def _merged(before: StreamPolicy | None, given: Mapping[str, Any]) -> StreamPolicy:
    """Return the policy with the given fields set; None removes a limit. No `before`: a new one."""
    policy = (before or StreamPolicy())._replace(**given)
    if before and policy.durability != before.durability:
        raise DurabilityFixed(field="durability", durability=before.durability)
    if before and policy.keyed != before.keyed:
        raise KeyedFixed(field="keyed", keyed=before.keyed)
    if policy.durability == "transient":
        for name, reason in _NOT_TRANSIENT.items():
            if getattr(policy, name) != StreamPolicy._field_defaults[name]:
                raise InvalidField(
                    f"A transient stream cannot have this policy: {reason}.", field=name
                )
        for name, most in _TRANSIENT_MAX.items():
            if (getattr(policy, name) or 0) > most:
                raise InvalidField(f"A transient stream retains at most {most}.", field=name)
    if policy.quench:
        _require_may_quench(policy)
    if policy.restate and not policy.keyed:
        raise InvalidField(
            "`restate` appends the latest event of each key at a start, so it needs `keyed`.",
            field="restate",
        )
    return policy


def _require_may_quench(policy: StreamPolicy) -> None:
    if policy.keyed:
        raise InvalidField(
            "A keyed stream cannot be quenched: the state of a key is its latest event, also if it"
            " matched no interest.",
            field="quench",
        )
    if policy.filterable_data:
        raise InvalidField(
            "A stream with `filterable_data` cannot be quenched: the interest in an event would"
            " depend on its body, which a producer does not evaluate.",
            field="quench",
        )


def set_quota(*, quota_bytes: int | None) -> None:
    """Set the quota of all data of the hub; None: EVENTHUB_QUOTA_BYTES. Always announced."""
    with transaction.atomic():
        storage.set_quota(raw_connection(), quota_bytes)
        announce(zone=None, type="storage.quota_set", attributes={"quota_bytes": quota_bytes})
