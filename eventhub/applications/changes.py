"""States that the hub itself changes: of groups, from the states of their members, and of
applications whose heartbeat is missed. SQL module.
"""

from collections.abc import Sequence
from typing import Any

import psycopg

from eventhub.applications.events import GroupState
from eventhub.base import limits
from eventhub.postgresql import queries
from eventhub.postgresql.rows import cursor_of

SQL = queries.load("eventhub/applications/sql/applications.sql")

# the policy of the stream `eventhub.applications`: at each start of the hub, all states are
# announced again
POLICY = {
    "keyed": True,
    "restate": True,
    "retain_events": limits.APPLICATION_EVENTS_RETAINED,
    "segment_events_max": limits.APPLICATION_EVENTS_RETAINED // 10,
}


def changed_groups(
    connection: psycopg.Connection[Any], applications: Sequence[int], groups: Sequence[int] = ()
) -> list[GroupState]:
    """Compute the states of groups, named by their ids or by those of applications in them, and
    return those that changed.
    """
    values = {"applications": [*applications], "groups": [*groups]}
    return cursor_of(connection, GroupState).execute(SQL["regroup"], values).fetchall()
