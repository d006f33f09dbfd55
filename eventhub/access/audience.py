"""The audience rule: which callers may see an event. Every path that exposes an event, or data
derived from one, applies it (eventhub/event/audience.py). Plain module.

An operator is no client and sees every event of the zone it names.
"""

from eventhub.access.principal import Principal
from eventhub.event.audience import may_see
from eventhub.event.envelope import Event


def is_shown(event: Event, principal: Principal | None) -> bool:
    """Return True if the caller may see the event. An operator is None or a login's principal."""
    if principal is None or principal.is_operator:
        return True
    return may_see(event, principal.client, principal.groups)
