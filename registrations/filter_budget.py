"""Expensive filters, which are evaluated for every event of a stream: rows of `expensive_filters`,
and the budget of each client that bounds them. SQL module.

Filters that an index finds by an event's values have no row (matching/cost.py); nearly all are of
this kind. A transaction that starts a version holds the lock of its client, so that concurrent
ones see each other's use.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import psycopg

from eventhub.base import limits
from eventhub.postgresql import queries
from eventhub.postgresql.rows import cursor_of, scalars
from registrations.errors import FiltersTooCostly

SQL = queries.load("registrations/sql/filter_budget.sql")

Connection = psycopg.Connection[Any]


class StartedVersion(NamedTuple):
    """A version that starts, and its cost on each of its streams; (): no cost."""

    registration: int
    streams: Sequence[int]
    costs: Sequence[int]


class _StreamCost(NamedTuple):
    """The cost of a registration on a stream."""

    registration_id: int
    stream_id: int
    cost: int


def record_costs(connection: Connection, begun: Iterable[StartedVersion]) -> None:
    """Insert the costs of versions that have any. The end of a version deleted its earlier rows."""
    expensive = [
        (one.registration, stream, cost)
        for one in begun
        for stream, cost in zip(one.streams, one.costs, strict=False)
        if cost
    ]
    if not expensive:
        return
    registrations, streams, costs = map(list, zip(*expensive, strict=True))
    values = {"registrations": registrations, "streams": streams, "costs": costs}
    connection.execute(SQL["record"], values)


class EvaluationBudget:
    """The remaining budget of a client (which is locked) while a change is planned.

    `changing`: registrations that the change may update or end.
    """

    def __init__(
        self, connection: Connection, client_id: int, changing: Iterable[int] = ()
    ) -> None:
        self._connection = connection
        self._client_id = client_id
        self._before: dict[int, dict[int, int]] = {}  # by registration and stream
        self._used: dict[int, int] = {}  # by stream, as stored
        self._planned: Counter[int] = Counter()  # by stream, in addition
        ids = list(changing)
        if ids:
            for row in cursor_of(connection, _StreamCost).execute(SQL["of_registrations"], (ids,)):
                self._before.setdefault(row.registration_id, {})[row.stream_id] = row.cost

    def take(self, streams: Sequence[int], costs: Sequence[int], registration: int = 0) -> None:
        """Take the costs of a version that starts, by stream; `registration`: the one it replaces.

        Raises FiltersTooCostly with the stream's name if a cost is greater than before and exceeds
        the budget.
        """
        before = self._before.get(registration, {})
        needed = {stream: cost for stream, cost in zip(streams, costs, strict=False) if cost}
        for stream, cost in needed.items():
            used = self._used_on(stream) - before.get(stream, 0)
            if cost > before.get(stream, 0) and used + cost > limits.FILTERS_TRIED_MAX:
                name = scalars(self._connection).execute(SQL["stream_name"], (stream,)).fetchone()
                raise FiltersTooCostly(cost=cost, used=used, stream=name or "")
        self.free(registration)
        self._planned.update(needed)

    def free(self, registration: int) -> None:
        """Return the budget of a registration that ends."""
        if registration in self._before:
            self._planned.subtract(self._before.pop(registration))

    def _used_on(self, stream: int) -> int:
        if stream not in self._used:
            values = (self._client_id, stream)
            used = scalars(self._connection).execute(SQL["used"], values).fetchone()
            self._used[stream] = used or 0
        return self._used[stream] + self._planned[stream]
