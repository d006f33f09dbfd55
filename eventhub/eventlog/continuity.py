"""Whether the store still holds what it acknowledged: asked on every new connection that appends or
fills rings, before either. Sql module.

After a crash recovery, what async streams had been shown may be gone; in another server, or on
another timeline, what all had. Their numbers would be given again, so they get new segments, by
which every reader can tell (EMC-15, EMC-16).
"""

from typing import Any

import psycopg

from eventhub.eventlog.append import SQL
from eventhub.eventlog.database import Connection
from eventhub.eventlog.system import Announcement, announce_in
from eventhub.logs import get_logger

log = get_logger(__name__)


async def prove(connection: Connection) -> str:
    """New segments for the streams that may have lost something, announced as `log.recovered`;
    nothing when all is well, which is one look at two rows.

    The life of the store: another one after every crash recovery and restore.
    """
    async with connection.transaction():
        found = await (await connection.execute(SQL["prove_continuity"])).fetchall()
        for reason, stream_ids in found:
            log.warning("log_recovered", reason=reason, streams=len(stream_ids))
            await announce_in(
                connection,
                zone=None,
                announcement=Announcement(
                    "log.recovered", {"reason": reason, "streams": len(stream_ids)}
                ),
            )
        row = await (await connection.execute(SQL["life"])).fetchone()
    return str(row[0]) if row else ""


def roll_all(connection: psycopg.Connection[Any]) -> int:
    """New segments for all streams, inside the caller's transaction: after a restore that the
    server's identifiers do not show. How many there are.
    """
    connection.execute(SQL["new_history"])
    row = connection.execute(SQL["roll_all"]).fetchone()
    return int(row[0]) if row else 0
