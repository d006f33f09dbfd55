"""Reads of match indexes, for who manages the stream."""

from pathlib import Path

from django.conf import settings

from eventhub.access.actor import Actor
from eventhub.access.system import raw_connection
from eventhub.eventlog import streams
from registrations.building.standing import Standing, standings


def find_standing(*, actor: Actor, stream: str) -> Standing:
    """How the stream's index stands."""
    connection = raw_connection()
    found = streams.get_stream(connection, actor.zone_id, stream)
    [standing] = standings(connection, Path(settings.ENV.data), [found.id], exact=False)
    return standing
