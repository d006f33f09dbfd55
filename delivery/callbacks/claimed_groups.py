"""Claims of parallel deliveries: those that differ only in their events are one group. SQL module.

As in delivery/callbacks/claims.py, the connection is in autocommit mode, and a claim whose answer
never arrives expires.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple
from uuid import uuid4

from delivery.callbacks.claims import SQL, Claimed
from eventhub.base import limits
from eventhub.postgresql.arrays import int8_array
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.prepared import fetch_prepared


class ClaimedGroup(NamedTuple):
    """Deliveries of an endpoint that this worker claimed together, by their sequences, ascending;
    the other fields are those of `Claimed`. `created_at_us` is that of the oldest.
    """

    partition_id: int
    endpoint_id: int
    segment_id: int
    stream_id: int
    lane_number: int
    registrations: list[int]
    attempts: int
    uncounted_attempts: int
    has_copy: bool
    created_at_us: int
    gap_first: int | None
    gap_reason: str | None
    version_ids: list[int] | None
    message_number: int | None
    forced: bool
    token: str
    is_repeat: bool
    sequences: list[int]

    def claimed(self, sequence: int) -> Claimed:
        """Return one of the deliveries."""
        before, after = self[:3], self[3:-2]  # fields of Claimed, in its order
        return Claimed._make((*before, sequence, *after, False, self.is_repeat, 0.0))

    def deliveries(self) -> list[Claimed]:
        """Return the deliveries."""
        return [self.claimed(sequence) for sequence in self.sequences]


AnyClaim = Claimed | ClaimedGroup


async def claim_groups(
    connection: Connection,
    requested: Mapping[int, int],
    *,
    token: str = "",
    probes: Collection[int] = (),
) -> list[ClaimedGroup]:
    """Claim due deliveries, for each endpoint at most the requested number; for endpoints
    whose circuit is open only if they are among `probes`. The token must not have been used before.
    """
    values = {
        "endpoints": int8_array([*requested]),
        "counts": int8_array([*requested.values()]),
        "probes": int8_array([*probes]),
        "token": token or str(uuid4()),
        "claim_s": limits.CALLBACK_CLAIM_S,
    }
    groups = await fetch_prepared(connection, ClaimedGroup, SQL["claim_parallel"], values)
    for each in groups:
        each.sequences.sort()  # much cheaper than in the statement
    return groups
