"""Shows the match index of a stream, and asks for builds of it. A worker does them (job.py)."""

from pathlib import Path

from django.conf import settings

from eventhub.access.actor import Actor
from eventhub.access.system import raw_connection
from eventhub.eventlog import streams
from eventhub.soon import BUILD_INDEXES, require_workers, soon
from registrations.building import rows
from registrations.building.standing import Standing, standings
from registrations.errors import NothingToIndex


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
    soon(BUILD_INDEXES)
    builds = rows.builds(connection, [found.stream.id])
    return found._replace(build=builds[found.stream.id])
