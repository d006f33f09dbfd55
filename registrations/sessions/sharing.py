"""Session groups whose members share: one of them gets each event. Such a group has a session of
its own, which has its position. Django module.
"""

from eventhub.base.errors import InvalidField
from eventhub.sessions.models import Kind, Quality, Session, SessionGroup, Sharing

_KEYED_ORDERS = ("fifo", "none")  # the orders of a group that shares by a key


def check(row: SessionGroup) -> None:
    """Raise InvalidField for settings that do not go together."""
    if row.share_by and row.sharing != Sharing.ONE:
        raise InvalidField("Only a group with `sharing` `one` has this.", field="share_by")
    if row.sharing == Sharing.ONE and row.quality != Quality.RELIABLE:
        raise InvalidField(
            "A group that shares is reliable: an event is for one member until it is acknowledged.",
            field="quality",
        )
    if row.share_by and row.order not in _KEYED_ORDERS:
        raise InvalidField(
            "A group that shares by a key has the order fifo; events of a key go in that order.",
            field="order",
        )


def insert_queue(row: SessionGroup) -> None:
    """Insert the session of a group that shares, which has its position. No client's session has
    such a name.
    """
    Session.objects.create(
        zone_id=row.zone_id,
        client_id=row.client_id,
        name=f"session_group/{row.name}",
        kind=Kind.GROUP,
        group=row,
    )
