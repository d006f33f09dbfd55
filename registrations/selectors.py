"""Reads of registrations, as far as the actor may see them."""

from typing import NamedTuple

from eventhub.access.actor import Actor
from eventhub.access.system import raw_connection
from eventhub.eventlog import streams
from registrations import rows
from registrations.errors import UnknownRegistration
from registrations.owners import heard, scope
from registrations.rows import Registration, Search
from registrations.services import Shown


class Asked(NamedTuple):
    """Which registrations are listed; None: all that the actor may see."""

    client: str | None = None
    stream: str | None = None
    endpoint: int | None = None
    group: str | None = None
    suspended: bool | None = None
    key: str | None = None


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


def list_registrations(*, actor: Actor, asked: Asked, after: int, count: int) -> list[Shown]:
    """At most `count` registrations by id, from the one after `after` on (SUN-09); of those, the
    ones all of whose streams the actor may listen to.
    """
    connection = raw_connection()
    client_id = scope(actor=actor, name=asked.client)
    may = heard(actor=actor)
    stream_id = None
    if asked.stream is not None:
        stream = streams.find_stream(connection, actor.zone_id, asked.stream)
        if stream is None:
            return []
        stream_id = stream.id
    search = Search(
        actor.zone_id,
        client_id,
        asked.endpoint,
        stream_id,
        group=asked.group,
        suspended=asked.suspended,
        key=asked.key,
        few=rows.few_streams(connection, actor.zone_id, *may),
        **may._asdict(),
    )
    return _shown(rows.search(connection, search, after, count))


def _shown(found: list[Registration]) -> list[Shown]:
    if not found:
        return []
    connection = raw_connection()
    names = rows.stream_names(connection, {id for one in found for id in one.streams})
    vectors = rows.vectors(connection, found)
    return [Shown(one, names, vectors[one.barrier]) for one in found]
