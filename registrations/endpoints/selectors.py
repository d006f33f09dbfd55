"""Reads of endpoints, as far as the actor may see them."""

from eventhub.access.actor import Actor
from eventhub.access.system import raw_connection
from registrations.endpoints import rows
from registrations.endpoints.rows import Endpoint, Whose
from registrations.owners import require_some_listen, scope


def whose(*, actor: Actor, client: str | None = None) -> Whose:
    """The endpoints that the actor deals with: a client's, or all of the zone."""
    return Whose(actor.zone_id, scope(actor=actor, name=client))


def find_endpoint(*, actor: Actor, endpoint_id: int) -> Endpoint:
    require_some_listen(actor=actor)
    return rows.get(raw_connection(), whose(actor=actor), endpoint_id)


def list_endpoints(*, actor: Actor, client: str | None, after: int, count: int) -> list[Endpoint]:
    """At most `count` endpoints by id, from the one after `after` on."""
    require_some_listen(actor=actor)
    return rows.search(raw_connection(), whose(actor=actor, client=client), after, count)
