"""Whose registrations and endpoints an actor deals with: a key with those of its own client, a
zone's manager with those of any client of the zone.
"""

from typing import NamedTuple

from eventhub.access.actor import Actor
from eventhub.access.selectors import find_client
from eventhub.errors import Forbidden, MissingField


class Owner(NamedTuple):
    """A client of the actor's zone."""

    id: int
    name: str


def owner(*, actor: Actor, name: str | None) -> Owner:
    """The client of that name; None is the key's own. Forbidden if it is another's and the actor is
    no manager.
    """
    own = actor.principal
    if own is not None and name in (None, own.client):
        return Owner(own.client_id, own.client)
    if name is None:
        raise MissingField("An operator says whose it is: name the `client`.", field="client")
    actor.require_zone_manager()
    client = find_client(zone_id=actor.zone_id, name=name)
    return Owner(client.pk, client.name)


def scope(*, actor: Actor, name: str | None = None) -> int | None:
    """The id of the client whose things are looked for; None for those of the whole zone."""
    if name is not None:
        return owner(actor=actor, name=name).id
    return None if actor.manages_zone or actor.principal is None else actor.principal.client_id


def require_listen(*, actor: Actor, stream: str) -> None:
    """What is in a stream is told to who may listen to it; what is in `system`, to managers."""
    try:
        actor.require("manage" if stream == "system" else "listen", stream)
    except Forbidden as error:
        error.field = "streams"
        raise
