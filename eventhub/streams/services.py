"""Makes streams and changes their policy; each change is announced in its own transaction."""

from typing import NamedTuple

from django.db import transaction

from eventhub.access.system import announce, raw_connection
from eventhub.errors import Forbidden
from eventhub.eventlog import streams
from eventhub.eventlog.streams import StreamPolicy, StreamRow

SYSTEM = "system"


class PolicyChange(NamedTuple):
    """What of a policy is given; None leaves what is, or takes the default in a new stream."""

    segment_events_max: int | None = None
    segment_bytes_max: int | None = None


def put_stream(
    *, zone_id: int, zone: str, name: str, change: PolicyChange
) -> tuple[StreamRow, bool]:
    """The stream with that policy, and whether it is new. The same again changes nothing."""
    if name == SYSTEM:
        raise Forbidden("The stream `system` is the hub's own.")
    connection = raw_connection()
    found = streams.find_stream(connection, zone_id, name)
    if found is not None and _changed(found.policy, change) == found.policy:
        return found, False
    with transaction.atomic():
        streams.lock_system(connection)
        found = streams.find_stream(connection, zone_id, name)
        if found is None:
            policy = _changed(StreamPolicy(), change)
            streams.create_stream(connection, zone_id, name, policy)
        else:
            policy = _changed(found.policy, change)
            streams.update_policy(connection, found.id, policy)
        announce(
            zone=zone,
            type="stream.changed" if found else "stream.created",
            attributes={"stream": name, **policy._asdict()},
        )
    return streams.get_stream(connection, zone_id, name), found is None


def _changed(policy: StreamPolicy, change: PolicyChange) -> StreamPolicy:
    given = {name: value for name, value in change._asdict().items() if value is not None}
    return policy._replace(**given)
