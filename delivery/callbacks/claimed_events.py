"""The events of claimed deliveries, from the log or from the deliveries' own copies. SQL module.

Every function takes an open connection in autocommit mode and raises what psycopg raises when the
database is unavailable.
"""

from collections.abc import Collection
from typing import NamedTuple

from delivery.callbacks.claims import SQL
from eventhub.postgresql.arrays import int8_array
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.prepared import fetch_prepared
from eventhub.postgresql.rows import fetch_all, fetch_value


class ClaimedEvent(NamedTuple):
    """The stored bytes of an event, and their number; None if the events that were looked up with
    it are too large together.
    """

    segment_id: int
    sequence: int
    appended_at_us: int
    size: int
    payload: bytes | None


async def load_events(
    connection: Connection, names: Collection[tuple[int, int]], bytes_max: int
) -> list[ClaimedEvent]:
    """Return those of the events that are in the database, by segment ids and sequences, without
    their bytes if they are larger than `bytes_max` together.
    """
    values = {
        "segments": int8_array([segment for segment, _ in names]),
        "sequences": int8_array([sequence for _, sequence in names]),
        "bytes_max": bytes_max,
    }
    return await fetch_prepared(connection, ClaimedEvent, SQL["events"], values)


async def load_copies(
    connection: Connection,
    owners: Collection[tuple[int, int]],
    names: Collection[tuple[int, int]],
    bytes_max: int,
) -> list[ClaimedEvent]:
    """Return the copies of events that deliveries have, as `load_events` does. `owners`: the
    partitions and endpoints of the deliveries, in the order of the names.
    """
    values = {
        "partitions": int8_array([partition for partition, _ in owners]),
        "endpoints": int8_array([endpoint for _, endpoint in owners]),
        "segments": int8_array([segment for segment, _ in names]),
        "sequences": int8_array([sequence for _, sequence in names]),
        "bytes_max": bytes_max,
    }
    return await fetch_all(connection, ClaimedEvent, SQL["copies"], values, binary=True)


async def retained_bytes(
    connection: Connection, endpoint: int, segment: int, sequence: int
) -> bytes | None:
    """Return the copy of the event that a delivery may have received after it was claimed."""
    values = {"endpoint": endpoint, "segment": segment, "sequence": sequence}
    retained: bytes | None = await fetch_value(connection, SQL["retained_bytes"], values)
    return retained


async def removal_reason(connection: Connection, segment: int) -> str:
    """Return why the events of a segment were removed."""
    values = {"segment": segment}
    return await fetch_value(connection, SQL["removal_reason"], values) or "dropped"
