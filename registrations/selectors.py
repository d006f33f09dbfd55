"""Reads the registrations that an actor may see. Django module."""

from types import SimpleNamespace
from typing import Any

from eventhub.access.principal import Actor
from eventhub.api.announcements import raw_connection
from registrations import rows
from registrations.owners import listenable_streams, scope
from registrations.representation import represent
from registrations.rows import RegistrationQuery


def list_registrations(
    *, actor: Actor, client: str | None = None, stream: str | None = None, **conditions: Any
) -> list[SimpleNamespace]:
    """Return live registrations in the order of their ids (SUN-09), filtered by client, stream and
    the fields of a `RegistrationQuery`. The actor must be allowed to listen to all of their
    streams.
    """
    connection = raw_connection()
    client_id = scope(actor=actor, name=client)
    if stream is not None:
        known = rows.streams_by_name(connection, actor.zone_id, [stream])
        if not known:
            return []
        conditions["stream_id"] = known[0].id
    may = listenable_streams(actor=actor)._asdict()
    found = rows.search(
        connection, RegistrationQuery(actor.zone_id, client_id, **conditions, **may)
    )
    if not found:
        return []
    names = rows.stream_names(connection, {id for one in found for id in one.streams})
    vectors = rows.vectors(connection, found)
    return [represent(one, names, vectors[one.barrier]) for one in found]
