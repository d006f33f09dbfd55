"""What a pull acknowledges and extends: finds the streams that it names, and stores the changes.
SQL module.
"""

from collections.abc import Mapping

from delivery.sessions import claims
from delivery.sessions.claims import AcknowledgedClaims, ChangedClaims, ExtendedClaims, Holder
from delivery.sessions.errors import StreamOfNoRegistration
from delivery.sessions.pull_request import PullIn
from eventhub.postgresql.connections import Connection

StreamIds = Mapping[str, int]  # by name
NO_STREAMS: StreamIds = {}


async def find_streams(connection: Connection, session_id: int, request: PullIn) -> StreamIds:
    """Return the streams that a request names. Raises StreamOfNoRegistration with the place."""
    places = request.places
    if not places:
        return NO_STREAMS
    found = await claims.stream_ids(connection, session_id, [*places])
    for stream, place in places.items():
        if stream not in found:
            raise StreamOfNoRegistration(field=f"{place}.stream", stream=stream)
    return found


async def store_changes(
    connection: Connection, holder: Holder, request: PullIn, streams: StreamIds
) -> ChangedClaims:
    """Acknowledge and extend events in one transaction, which commits before it returns. Raises
    SessionReplaced.
    """
    async with claims.changing(connection, holder):
        return await claims.change(
            connection,
            holder,
            [
                AcknowledgedClaims(streams[one.stream], one.sequence, one.sequences)
                for one in request.acknowledgements
            ],
            [
                ExtendedClaims(streams[one.stream], one.sequences, one.visibility_s)
                for one in request.visibility
            ],
        )
