"""Visibility of an event to a client, by the event's `destinations` and `audience`. Plain module.

The event never changes. The client's groups count as they are when the event is about to be sent,
like its grants.

Source: OIF, "Summary" (OIF-32); FOX 4.4 (FOX-14); requirements, decisions U19.
"""

from eventhub.event.envelope import Event


def may_see(event: Event, client: str, groups: frozenset[str], session: str = "") -> bool:
    """Return whether a client in these groups may see the event: it is among the `destinations`
    and in a group of the `audience`, where the event has them. For delivery to a session of the
    client, `client/session` among the destinations counts as well.
    """
    named = event.destinations
    if named and client not in named and not (session and f"{client}/{session}" in named):
        return False
    return not event.audience or not groups.isdisjoint(event.audience)


def is_visible_in_zone(event: Event, zone: str) -> bool:
    """Return whether managers of a zone see this event of `system`: its zone is theirs, or it
    concerns the whole hub.
    """
    return bool(event.attributes.get("zone", zone) == zone)
