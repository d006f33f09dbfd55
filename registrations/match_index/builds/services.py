"""The status of a stream's match index, and requests for builds, which workers run (task.py).
Django module.
"""

from pathlib import Path

from django.conf import settings

from eventhub.access.principal import Actor
from eventhub.api.announcements import raw_connection
from eventhub.base.broker import BUILD_INDEXES, request_task, require_workers
from eventhub.eventlog import streams
from registrations.errors import NothingToIndex
from registrations.match_index.builds import statements
from registrations.match_index.builds.status import IndexStatus, index_statuses


def find_status(*, actor: Actor, stream: str) -> IndexStatus:
    """Return the status of the stream's index."""
    connection = raw_connection()
    found = streams.get_stream(connection, actor.zone_id, stream)
    [standing] = index_statuses(connection, Path(settings.ENV.data), [found.id], exact=False)
    return standing


def request_build(*, actor: Actor, stream: str) -> IndexStatus:
    """Request a build by a worker as soon as possible; a second request before it starts changes
    nothing. Raises NothingToIndex, RedisOff.
    """
    require_workers()
    found, connection = find_status(actor=actor, stream=stream), raw_connection()
    if found.idle:
        raise NothingToIndex(found.idle, stream=stream)
    statements.request(connection, found.stream.id)
    request_task(BUILD_INDEXES)
    builds = statements.builds(connection, [found.stream.id])
    return found._replace(build=builds[found.stream.id])
