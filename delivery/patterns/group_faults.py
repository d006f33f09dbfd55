"""Records that no forwarder can run a group, and that one runs it again: in its row, which the API
and the hub's health show, and as an event for its owner. SQL module.
"""

from typing import Any

import orjson

from delivery.patterns.group_tables import SQL, GroupLease, LeasedGroup
from eventhub.base import limits
from eventhub.eventlog import append
from eventhub.eventlog.append import append_proven
from eventhub.eventlog.system import Announcement, drafts_of
from eventhub.postgresql.connections import Connection, answered_within

UNREADABLE = {
    "code": "state_unreadable",
    "message": (
        "The partial matches that the hub stored of this group cannot be read, so none of its"
        " patterns runs. Suspend the group and resume it: its patterns then begin again, without"
        " partial matches, with the events after that."
    ),
}


async def record(
    connection: Connection, lease: GroupLease, group: LeasedGroup, fault: dict[str, str] | None
) -> None:
    """Record a fault, or with None its end, unless that is known. Writes nothing if the lease is
    lost. Raises what psycopg raises.
    """
    type = "pattern_group.started" if fault is None else "pattern_group.stopped"
    attributes: dict[str, Any] = {
        "client": group.client,
        "pattern_group": group.id,
        "name": group.name,
        **(fault or {}),
    }
    drafts = drafts_of(group.zone, [Announcement(type, attributes)])
    with answered_within(connection, limits.APPEND_TIMEOUT_S_MAX):
        async with connection.transaction():
            text = None if fault is None else orjson.dumps(fault).decode()
            changed = await connection.execute(SQL["set_fault"], {**lease._asdict(), "fault": text})
            if not changed.rowcount:
                return
            heads = await append_proven(connection, drafts)
        await connection.execute(append.SQL["notify"], (append.heads_text(heads),))
