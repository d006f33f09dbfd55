"""What is tried for every event of a stream, of each client's filters: rows of `expensive_filters`,
and the budget that bounds them. Sql module.

Filters that an event's values lead to have no row (match/budget.py), so nearly none has. Who begins
a version holds the lock of its client's session: of two, one sees what the other one took.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from eventhub import limits
from eventhub.eventlog import queries
from registrations.errors import FiltersTooCostly

SQL = queries.load("expensive.sql", Path(__file__).parent / "sql")

Connection = psycopg.Connection[Any]


class Begun(NamedTuple):
    """A version that begins, and what it takes on each of its streams; (): nothing."""

    registration: int
    streams: Sequence[int]
    costs: Sequence[int]


def note(connection: Connection, begun: Iterable[Begun]) -> None:
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
            for registration, stream, cost in connection.execute(SQL["of_registrations"], (ids,)):
                self._before.setdefault(registration, {})[stream] = cost

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
                name = self._connection.execute(SQL["stream_name"], (stream,)).fetchone()
                raise FiltersTooCostly(cost=cost, used=used, stream=name[0] if name else "")
        self.free(registration)
        self._planned.update(wanted)

    def free(self, registration: int) -> None:
        """For one that ends."""
        if registration in self._before:
            self._planned.subtract(self._before.pop(registration))

    def _used_on(self, stream: int) -> int:
        if stream not in self._used:
            row = self._connection.execute(SQL["used"], (self._client_id, stream)).fetchone()
            self._used[stream] = row[0] if row else 0
        return self._used[stream] + self._planned[stream]
