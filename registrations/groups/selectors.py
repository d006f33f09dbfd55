"""Reads of groups of registrations, as far as the actor may see them."""

from eventhub.access.actor import Actor
from eventhub.access.system import raw_connection
from registrations.endpoints.rows import Whose
from registrations.groups import rows
from registrations.groups.rows import Group
from registrations.owners import require_some_listen, scope


def whose(*, actor: Actor, client: str | None = None) -> Whose:
    """The groups that the actor deals with: a client's, or all of the zone."""
    return Whose(actor.zone_id, scope(actor=actor, name=client))


def find_group(*, actor: Actor, group_id: int) -> Group:
    require_some_listen(actor=actor)
    return rows.get(raw_connection(), whose(actor=actor), group_id)


def list_groups(*, actor: Actor, client: str | None, after: int, count: int) -> list[Group]:
    """At most `count` groups by id, from the one after `after` on."""
    require_some_listen(actor=actor)
    return rows.search(raw_connection(), whose(actor=actor, client=client), after, count)
