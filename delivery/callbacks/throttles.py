"""The rate limits and the concurrency of endpoints, which all workers keep together. The statements
are in delivery/sql/throttles.sql. SQL module.

Only endpoints that have such a limit cost anything: their claims run in a transaction that locks
the endpoints' rows, and a worker skips an endpoint for which another one is claiming.
"""

from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple

from delivery.callbacks.claims import CallbackEndpoint
from eventhub.base import limits
from eventhub.postgresql import queries
from eventhub.postgresql.arrays import int8_array
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import fetch_all, fetch_values

SQL = queries.load("delivery/sql/throttles.sql")
_EARLY = 0.05  # of a token: a search for due deliveries may come that much too early


class _Allowed(NamedTuple):
    """The requests that an endpoint may get now: so many at a time, and so many altogether."""

    endpoint_id: int
    slots: int
    tokens: int


class Throttle:
    """What the limits of some endpoints allow in one claim."""

    def __init__(self) -> None:
        self.is_limiting = False  # less was allowed than requested
        self._tokens: dict[int, int] = {}
        self._per_slot: dict[int, int] = {}
        self._used: Counter[int] = Counter()

    def record(self, allowed: _Allowed) -> int:
        """Record what is allowed; return the number of slots that may be claimed."""
        slots = min(allowed.slots, allowed.tokens)
        self._tokens[allowed.endpoint_id] = allowed.tokens
        self._per_slot[allowed.endpoint_id] = max(1, allowed.tokens // slots)
        return slots

    def per_slot(self, endpoint_id: int) -> int:
        """Return how many deliveries one ordered lane may claim."""
        lane = limits.CALLBACK_LANE_DELIVERIES_MAX
        return min(lane, self._per_slot.get(endpoint_id, lane))

    def use(self, requests: Mapping[int, int]) -> None:
        """Record how many requests the claims of each endpoint take."""
        self._used.update(requests)

    def unused(self) -> dict[int, int]:
        """Return the tokens that no claim used, by endpoint."""
        left = {each: count - self._used[each] for each, count in self._tokens.items()}
        return {each: count for each, count in left.items() if count > 0}


@asynccontextmanager
async def within_throttles(
    connection: Connection,
    endpoints: Mapping[int, CallbackEndpoint],
    requested: dict[int, int],
    *,
    per_slot: int = 1,
) -> AsyncIterator[Throttle]:
    """Lower `requested`, the slots by endpoint, to what the limits of these endpoints allow now,
    and remove those that may get nothing. Claim inside the block: other workers claim for the
    limited endpoints only after it. A slot takes up to `per_slot` requests, one after the other.
    """
    throttle = Throttle()
    limited = [each for each in requested if endpoints[each].is_limited]
    if not limited:
        yield throttle
        return
    await connection.execute(SQL["add"], {"endpoints": int8_array(limited)})
    async with connection.transaction():
        locked = await fetch_values(connection, SQL["lock"], {"endpoints": int8_array(limited)})
        values = {
            "endpoints": int8_array(locked),
            "counts": int8_array([requested[each] for each in locked]),
            "per_slot": per_slot,
            "claim_s": limits.CALLBACK_CLAIM_S,
            "early": _EARLY,
        }
        allowed = await fetch_all(connection, _Allowed, SQL["take"], values)
        slots = {each.endpoint_id: throttle.record(each) for each in allowed}
        for each in limited:
            throttle.is_limiting |= slots.get(each, 0) < requested[each]
            requested[each] = slots.get(each, 0)
            if not requested[each]:
                del requested[each]
        yield throttle
        unused = throttle.unused()
        if unused:
            counts = int8_array([*unused.values()])
            returned = {"endpoints": int8_array([*unused]), "counts": counts}
            await connection.execute(SQL["give_back"], returned)
