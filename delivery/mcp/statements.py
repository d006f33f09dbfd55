"""The SQL statements of the MCP route. SQL module."""

from datetime import datetime
from typing import NamedTuple

from eventhub.eventlog.log import Log
from eventhub.eventlog.stored import Cursor
from eventhub.postgresql import queries
from eventhub.postgresql.connections import reading
from eventhub.postgresql.rows import cursor_of

SQL = queries.load("delivery/sql/mcp.sql")


async def stream_names(log: Log, zone_id: int, count: int) -> list[str]:
    """Return the first names of a zone's streams. Raises DatabaseUnavailable."""
    async with reading(log.lookups) as connection:
        cursor = await connection.execute(SQL["stream_names"], (zone_id, count))
        return [name for (name,) in await cursor.fetchall()]


class SubscriptionRow(NamedTuple):
    """A subscription: a registration, the endpoint that it names, and how that is called."""

    registration: int
    endpoint: int
    stream: int
    secret: bytes  # sealed
    enabled: bool
    reason: str | None
    verified: bool
    verification: str | None  # the outcome of the last one that ended
    verification_status: int | None
    delivered_at: datetime | None
    outcome: str | None  # of the last attempt
    status: int | None
    failing_since: datetime | None


async def find_subscription(log: Log, client_id: int, key: str) -> SubscriptionRow | None:
    """Return the subscription of a client with a key. Raises DatabaseUnavailable."""
    async with reading(log.lookups) as connection:
        query = cursor_of(connection, SubscriptionRow)
        return await (await query.execute(SQL["subscription"], (client_id, key))).fetchone()


async def watermark(log: Log, subscription: SubscriptionRow) -> Cursor | None:
    """Return a position up to which every delivery has ended; None if nothing was ever matched.
    Raises DatabaseUnavailable.
    """
    values = {"endpoint": subscription.endpoint, "stream": subscription.stream}
    async with reading(log.lookups) as connection:
        query = cursor_of(connection, Cursor)
        return await (await query.execute(SQL["watermark"], values)).fetchone()
