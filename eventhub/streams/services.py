"""Makes streams and changes their policy; each change is announced in its own transaction."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from eventhub.access.conditions import require_unchanged
from eventhub.access.grants import SYSTEM
from eventhub.access.system import announce, raw_connection
from eventhub.errors import Forbidden
from eventhub.eventlog import streams
from eventhub.eventlog.changes import Resource
from eventhub.eventlog.streams import StreamRow
from eventhub.streams.policies import changed_policy, new_policy


def put_stream(
    *, zone_id: int, zone: str, name: str, policy: Mapping[str, Any], if_match: int | None = None
) -> tuple[StreamRow, bool]:
    """The stream with what is given of a policy, and whether it is new; the rest stays, or is the
    default in a new one. The same again changes nothing.
    """
    if name == SYSTEM:
        raise Forbidden("The stream `system` is the hub's own.")
    connection = raw_connection()
    found = streams.find_stream(connection, zone_id, name)
    if found is not None and if_match is None and not _changes(found, policy):
        return found, False
    resource = stream_resource(zone_id, name)
    with transaction.atomic():
        streams.lock_system(connection)
        found = streams.find_stream(connection, zone_id, name)
        require_unchanged(resource, if_match, there=found is not None)
        if found is not None and not _changes(found, policy):
            return found, False
        if found is None:
            wanted = new_policy(policy)
            streams.create_stream(connection, zone_id, name, wanted)
        else:
            wanted = changed_policy(found.policy, policy)
            streams.update_policy(connection, found.id, wanted)
        announce(
            zone=zone,
            type="stream.changed" if found else "stream.created",
            attributes={"stream": name, **wanted._asdict()},
            resource=resource,
        )
    return streams.get_stream(connection, zone_id, name), found is None


def stream_resource(zone_id: int, name: str) -> Resource:
    """A stream's policy; `system` is in no zone's own."""
    return Resource("stream", zone_id, name)


def _changes(found: StreamRow, policy: Mapping[str, Any]) -> bool:
    return changed_policy(found.policy, policy) != found.policy
