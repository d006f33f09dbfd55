"""Shows the match index of a stream, and asks for builds of it. A worker does them (job.py).
Django module.
"""

from pathlib import Path

from django.conf import settings

from eventhub.access.actor import Actor
from eventhub.api.announcements import raw_connection
from eventhub.base.task_requests import BUILD_INDEXES, request_task, require_workers
from eventhub.eventlog import streams
from registrations.errors import NothingToIndex
from registrations.match_index.builds import rows
from registrations.match_index.builds.status import Standing, standings


def find_standing(*, actor: Actor, stream: str) -> Standing:
    """How the stream's index stands."""
    connection = raw_connection()
    found = streams.get_stream(connection, actor.zone_id, stream)
    [standing] = standings(connection, Path(settings.ENV.data), [found.id], exact=False)
    return standing


def ask_build(*, actor: Actor, stream: str) -> Standing:
    """A worker is to build the stream's index as soon as it can; who asks again before it has begun
    changes nothing. Raises NothingToIndex, RedisOff.
    """
    require_workers()
    found, connection = find_standing(actor=actor, stream=stream), raw_connection()
    if found.idle:
        raise NothingToIndex(found.idle, stream=stream)
    rows.ask(connection, found.stream.id)
    request_task(BUILD_INDEXES)
    builds = rows.builds(connection, [found.stream.id])
    return found._replace(build=builds[found.stream.id])
