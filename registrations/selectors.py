"""Reads the registrations that an actor may see. Django module."""

from types import SimpleNamespace
from typing import Any

from eventhub.access.principal import Actor
from eventhub.api.announcements import raw_connection
from registrations import statements
from registrations.probable_mistakes import with_data_warnings
from registrations.representation import represent
from registrations.scope import listenable_streams, scope
from registrations.statements import RegistrationQuery


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
        known = statements.streams_by_name(connection, actor.zone_id, [stream])
        if not known:
            return []
        conditions["stream_id"] = known[0].id
    may = listenable_streams(actor=actor)._asdict()
    found = statements.search(
        connection, RegistrationQuery(actor.zone_id, client_id, **conditions, **may)
    )
    if not found:
        return []
    names = statements.stream_names(connection, {id for one in found for id in one.streams})
    vectors = statements.vectors(connection, found)
    return with_data_warnings([represent(one, names, vectors[one.barrier]) for one in found])
