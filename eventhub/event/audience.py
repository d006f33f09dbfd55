"""For whom an event is, by what it says itself. Plain module.

What the event names never changes; the groups that a client has when the event is about to leave
decide, as its grants do.

Source: OIF, "Summary" (OIF-32); FOX 4.4 (FOX-14); requirements, decisions U19.
"""

from eventhub.event.envelope import Event


def may_see(event: Event, client: str, groups: frozenset[str]) -> bool:
    """True if a client of those groups may learn of the event: it is one of the `destinations`, if
    there are any, and in one of the groups of the `audience`, if there are any.
    """
    if event.destinations and client not in event.destinations:
        return False
    return not event.audience or not groups.isdisjoint(event.audience)


def is_visible_in_zone(event: Event, zone: str) -> bool:
    """True if the managers of a zone see the event of `system`: it is of their zone, or of the
    whole hub.
    """
    of: object = event.attributes.get("zone", zone)
    return of == zone
