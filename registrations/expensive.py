"""What is tried for every event of a stream, of each client's filters: rows of `expensive_filters`,
and the budget that bounds them. SQL module.

Filters that an event's values lead to have no row (match/budget.py), so nearly none has. Who begins
a version holds the lock of its client's session: of two, one sees what the other one took.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import psycopg

from eventhub.base import limits
from eventhub.postgresql import queries
from eventhub.postgresql.rows import cursor_of, scalars
from registrations.errors import FiltersTooCostly

SQL = queries.load("registrations/sql/expensive.sql")

Connection = psycopg.Connection[Any]


class ExpensiveVersion(NamedTuple):
    """A version that begins, and what it takes on each of its streams; (): nothing."""

    registration: int
    streams: Sequence[int]
    costs: Sequence[int]


class _Cost(NamedTuple):
    """What a registration takes on a stream."""

    registration_id: int
    stream_id: int
    cost: int


def note(connection: Connection, begun: Iterable[ExpensiveVersion]) -> None:
    """Those that take something. What the registrations took before is gone by then: what ends a
    version forgets it.
    """
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
    connection.execute(SQL["note"], values)


class Budget:
    """What a client whose session is locked has left, while a change is planned.

    `changing`: registrations that may be changed or ended by it.
    """

    def __init__(
        self, connection: Connection, client_id: int, changing: Iterable[int] = ()
    ) -> None:
        self._connection = connection
        self._client_id = client_id
        self._before: dict[int, dict[int, int]] = {}  # by registration and stream
        self._used: dict[int, int] = {}  # by stream, as stored
        self._planned: Counter[int] = Counter()  # more than that
        ids = list(changing)
        if ids:
            for row in cursor_of(connection, _Cost).execute(SQL["of_registrations"], (ids,)):
                self._before.setdefault(row.registration_id, {})[row.stream_id] = row.cost

    def take(self, streams: Sequence[int], costs: Sequence[int], registration: int = 0) -> None:
        """For a version that begins, by stream; `registration`: in the place of another one.

        Raises FiltersTooCostly with the stream's id where that takes more than before, and more
        than there is.
        """
        before = self._before.get(registration, {})
        wanted = {stream: cost for stream, cost in zip(streams, costs, strict=False) if cost}
        for stream, cost in wanted.items():
            used = self._used_on(stream) - before.get(stream, 0)
            if cost > before.get(stream, 0) and used + cost > limits.FILTERS_TRIED_MAX:
                name = scalars(self._connection).execute(SQL["stream_name"], (stream,)).fetchone()
                raise FiltersTooCostly(cost=cost, used=used, stream=name or "")
        self.free(registration)
        self._planned.update(wanted)

    def free(self, registration: int) -> None:
        """For one that ends."""
        if registration in self._before:
            self._planned.subtract(self._before.pop(registration))

    def _used_on(self, stream: int) -> int:
        if stream not in self._used:
            values = (self._client_id, stream)
            used = scalars(self._connection).execute(SQL["used"], values).fetchone()
            self._used[stream] = used or 0
        return self._used[stream] + self._planned[stream]
