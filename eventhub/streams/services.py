"""Makes streams, changes their policy, sets the hub's quota; each announced in its transaction.
Django module.
"""

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from eventhub.access.grants import SYSTEM
from eventhub.api.announcements import announce, raw_connection
from eventhub.api.conditions import require_unchanged
from eventhub.base import limits
from eventhub.base.errors import Forbidden, InvalidField
from eventhub.eventlog import streams
from eventhub.eventlog.errors import DurabilityFixed
from eventhub.eventlog.resource_changes import Resource
from eventhub.eventlog.retention import storage
from eventhub.eventlog.streams import StreamPolicy, StreamRow
from eventhub.streams.errors import KeyedFixed

# what a stream that is kept in memory alone cannot promise
_NOT_TRANSIENT = {
    "keyed": "its state would be lost with its events",
    "restate": "nothing of it is left at a start of the hub",
    "segment_events_max": "its one segment lasts as long as its memory",
    "segment_bytes_max": "its one segment lasts as long as its memory",
    "segment_age_s_max": "its one segment lasts as long as its memory",
    "retain_age_s": "its events go when newer ones need their place",
    "on_lag": "the oldest events make room for new ones, whoever waits for them",
    "hold": "nothing of it is stored, so nothing can be held",
    "archive": "nothing of it is stored, so nothing can be archived",
}
# how much of it is kept in memory
_TRANSIENT_MAX = {
    "retain_events": limits.TRANSIENT_EVENTS_MAX,
    "retain_bytes": limits.TRANSIENT_BYTES_MAX,
}


def put_stream(
    *, zone_id: int, zone: str, name: str, policy: Mapping[str, Any], if_match: int | None = None
) -> tuple[StreamRow, bool]:
    """The stream with what is given of a policy, and whether it is new; the rest stays, or is the
    default in a new one. The same again changes nothing. Raises DurabilityFixed, KeyedFixed,
    InvalidField for what does not go together.
    """
    if name == SYSTEM:
        raise Forbidden("The stream `system` is the hub's own.")
    connection = raw_connection()
    found = streams.find_stream(connection, zone_id, name)
    if found and if_match is None and _with(found.policy, policy) == found.policy:
        return found, False
    resource = Resource("stream", zone_id, name)
    with transaction.atomic():
        streams.lock_system(connection)
        found = streams.find_stream(connection, zone_id, name)
        require_unchanged(resource, if_match, exists=found is not None)
        wanted = _with(found and found.policy, policy)
        if found is None:
            streams.create_stream(connection, zone_id, name, wanted)
        elif wanted == found.policy:
            return found, False
        else:
            streams.update_policy(connection, found.id, wanted)
        announce(
            zone=zone,
            type="stream.changed" if found else "stream.created",
            attributes={"stream": name, **wanted._asdict()},
            resource=resource,
        )
    return streams.get_stream(connection, zone_id, name), found is None


def _with(before: StreamPolicy | None, given: Mapping[str, Any]) -> StreamPolicy:
    """The policy with what is given; None removes a limit. Without one before: a new stream's."""
    policy = (before or StreamPolicy())._replace(**given)
    if before and policy.durability != before.durability:
        raise DurabilityFixed(field="durability", durability=before.durability)
    if before and policy.keyed != before.keyed:
        raise KeyedFixed(field="keyed", keyed=before.keyed)
    if policy.durability == "transient":
        for name, reason in _NOT_TRANSIENT.items():
            if getattr(policy, name) != StreamPolicy._field_defaults[name]:
                raise InvalidField(f"A transient stream has no such policy: {reason}.", field=name)
        for name, most in _TRANSIENT_MAX.items():
            if (getattr(policy, name) or 0) > most:
                raise InvalidField(f"A transient stream keeps at most {most}.", field=name)
    if policy.quench and policy.keyed:
        raise InvalidField(
            "The state of a key is its latest event, whether somebody wanted it then or not: a"
            " keyed stream is not quenched.",
            field="quench",
        )
    if policy.restate and not policy.keyed:
        raise InvalidField(
            "What is told again at a start is the latest event of each key: it needs `keyed`.",
            field="restate",
        )
    return policy


def set_quota(*, quota_bytes: int | None) -> None:
    """For all data of the hub; None: as EVENTHUB_QUOTA_BYTES says. The same again is told again."""
    with transaction.atomic():
        storage.set_quota(raw_connection(), quota_bytes)
        announce(zone=None, type="storage.quota_set", attributes={"quota_bytes": quota_bytes})
