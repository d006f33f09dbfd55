"""Who may notice an event: the one rule that everything asks which lets an event, or what follows
from one, out to whoever asks (eventhub/event/audience.py). Plain module.

Operators are no clients and see all of the zone they name.
"""

from eventhub.access.principal import Principal
from eventhub.event.audience import may_see
from eventhub.event.envelope import Event


def is_shown(event: Event, principal: Principal | None) -> bool:
    """True if whoever asks may see the event. None, and the stand-in of a login: an operator."""
    if principal is None or principal.is_operator:
        return True
    return may_see(event, principal.client, principal.groups)
