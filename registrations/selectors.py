"""Reads of registrations, as far as the actor may see them. Django module."""

from types import SimpleNamespace
from typing import Any

from eventhub.access.actor import Actor
from eventhub.api.announcements import raw_connection
from registrations import rows
from registrations.owners import heard, scope
from registrations.representation import shown
from registrations.rows import Search


def list_registrations(
    *, actor: Actor, client: str | None = None, stream: str | None = None, **asked: Any
) -> list[SimpleNamespace]:
    """Live registrations by id (SUN-09), by what a `Search` asks, and by the names of a client and
    of a stream; of those, the ones all of whose streams the actor may listen to.
    """
    connection = raw_connection()
    client_id = scope(actor=actor, name=client)
    if stream is not None:
        known = rows.streams_by_name(connection, actor.zone_id, [stream])
        if not known:
            return []
        asked["stream_id"] = known[0].id
    may = heard(actor=actor)._asdict()
    found = rows.search(connection, Search(actor.zone_id, client_id, **asked, **may))
    if not found:
        return []
    names = rows.stream_names(connection, {id for one in found for id in one.streams})
    vectors = rows.vectors(connection, found)
    return [shown(one, names, vectors[one.barrier]) for one in found]
