"""Reads of registrations, as far as the actor may see them."""

from collections.abc import Mapping
from typing import Any

from eventhub.access.actor import Actor
from eventhub.access.system import raw_connection
from eventhub.eventlog import streams
from registrations import rows
from registrations.errors import UnknownRegistration
from registrations.owners import heard, scope
from registrations.rows import Registration, Search
from registrations.shown import Shown


def find_registration(*, actor: Actor, id: int) -> Shown:
    """A live registration; UnknownRegistration if it is not the actor's to see, as when it may not
    listen to one of the streams.
    """
    connection = raw_connection()
    rows.owner_of(connection, actor.zone_id, scope(actor=actor), id)
    found = _shown(rows.show(connection, [id]))
    if not found or not all(actor.may_listen(name) for name in found[0].names.values()):
        raise UnknownRegistration(field="registration")
    return found[0]


def list_registrations(
    *, actor: Actor, asked: Mapping[str, Any], after: int, count: int
) -> list[Shown]:
    """At most `count` registrations by id, from the one after `after` on (SUN-09), by the values of
    the filters; of those, the ones all of whose streams the actor may listen to.
    """
    connection = raw_connection()
    search = dict(asked)
    client, stream = search.pop("client"), search.pop("stream")
    client_id = scope(actor=actor, name=client)
    may = heard(actor=actor)
    if stream is not None:
        found = streams.find_stream(connection, actor.zone_id, stream)
        if found is None:
            return []
        search["stream_id"] = found.id
    few = rows.few_streams(connection, actor.zone_id, *may)
    wanted = Search(actor.zone_id, client_id, few=few, **search, **may._asdict())
    return _shown(rows.search(connection, wanted, after, count))


def _shown(found: list[Registration]) -> list[Shown]:
    if not found:
        return []
    connection = raw_connection()
    names = rows.stream_names(connection, {id for one in found for id in one.streams})
    vectors = rows.vectors(connection, found)
    return [Shown(one, names, vectors[one.barrier]) for one in found]
