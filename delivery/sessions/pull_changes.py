"""Stores what a pull acknowledges and extends: all of it, or nothing. SQL module."""

from collections.abc import Mapping

from delivery.sessions import claims
from delivery.sessions.claims import AcknowledgedClaims, ChangedClaims, ExtendedClaims, Holder
from delivery.sessions.errors import StreamOfNoRegistration
from delivery.sessions.pull_request import PullIn
from eventhub.postgresql.connections import Connection


async def store_changes(connection: Connection, holder: Holder, request: PullIn) -> ChangedClaims:
    """Acknowledge and extend events in one transaction, which commits before it returns. Raises
    SessionReplaced, and StreamOfNoRegistration with the place in the request.
    """
    streams = [one.stream for one in request.acknowledgements]
    streams += [one.stream for one in request.visibility]
    async with claims.changing(connection, holder):
        ids = await claims.stream_ids(connection, holder.session_id, streams)
        return await claims.change(
            connection,
            holder,
            [
                AcknowledgedClaims(
                    _id(ids, one.stream, f"acknowledgements.{at}"), one.sequence, one.sequences
                )
                for at, one in enumerate(request.acknowledgements)
            ],
            [
                ExtendedClaims(
                    _id(ids, one.stream, f"visibility.{at}"), one.sequences, one.visibility_s
                )
                for at, one in enumerate(request.visibility)
            ],
        )


def _id(ids: Mapping[str, int], stream: str, place: str) -> int:
    """Return the id of a stream. Raises StreamOfNoRegistration."""
    if stream not in ids:
        raise StreamOfNoRegistration(field=f"{place}.stream", stream=stream)
    return ids[stream]
