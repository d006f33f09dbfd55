"""Who may notice an event: the one rule that everything asks which lets an event, or what follows
from one, out to a client. Plain.

The groups that a client has when the event is about to leave decide, as its grants do; what the
event names never changes. Operators are no clients and see all of the zone they name.

Source: OIF, "Summary" (OIF-32); FOX 4.4 (FOX-14); requirements, decisions U19.
"""

from eventhub.access.principal import Principal
from eventhub.event.envelope import Event


def may_see(event: Event, client: str, groups: frozenset[str]) -> bool:
    """True if a client of those groups may learn of the event: it is one of the `destinations`, if
    there are any, and in one of the groups of the `audience`, if there are any.
    """
    if event.destinations and client not in event.destinations:
        return False
    return not event.audience or not groups.isdisjoint(event.audience)


def is_shown(event: Event, principal: Principal | None) -> bool:
    """True if whoever asks may see the event. None, and the stand-in of a login: an operator."""
    if principal is None or principal.is_operator:
        return True
    return may_see(event, principal.client, principal.groups)
