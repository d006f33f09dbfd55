"""Asks for builds of match indexes. A worker does them (job.py)."""

from eventhub.access.actor import Actor
from eventhub.access.system import raw_connection
from registrations.building import rows
from registrations.building.selectors import find_standing
from registrations.building.standing import Standing
from registrations.errors import NothingToIndex


def ask_build(*, actor: Actor, stream: str) -> Standing:
    """A worker is to build the stream's index as soon as it can; who asks again before it has begun
    changes nothing. Raises NothingToIndex.
    """
    found = find_standing(actor=actor, stream=stream)
    if found.refused:
        raise NothingToIndex(found.refused, stream=stream)
    rows.ask(raw_connection(), found.stream.id)
    return find_standing(actor=actor, stream=stream)
