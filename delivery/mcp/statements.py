"""The SQL statements of the MCP route. SQL module."""

from eventhub.eventlog.log import Log
from eventhub.postgresql import queries
from eventhub.postgresql.connections import reading

SQL = queries.load("delivery/sql/mcp.sql")


async def stream_names(log: Log, zone_id: int, count: int) -> list[str]:
    """Return the first names of a zone's streams. Raises DatabaseUnavailable."""
    async with reading(log.lookups) as connection:
        cursor = await connection.execute(SQL["stream_names"], (zone_id, count))
        return [name for (name,) in await cursor.fetchall()]
