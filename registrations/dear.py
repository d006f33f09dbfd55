"""What is tried for every event of a stream, of each client's filters: rows of `dear_filters`, and
the budget that bounds them. Sql module.

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

SQL = queries.load("dear.sql", Path(__file__).parent / "sql")

Connection = psycopg.Connection[Any]


class Begun(NamedTuple):
    """A version that begins, and what it takes on each of its streams."""

    registration: int
    streams: Sequence[int]
    cost: int


def note(connection: Connection, begun: Iterable[Begun]) -> None:
    """Those that take something. What the registrations took before is gone by then: what ends a
    version forgets it.
    """
    dear = [one for one in begun if one.cost]
    if not dear:
        return
    values = {
        "registrations": [one.registration for one in dear],
        "streams": [f"{{{','.join(map(str, one.streams))}}}" for one in dear],
        "costs": [one.cost for one in dear],
    }
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

    def take(self, streams: Sequence[int], cost: int, registration: int = 0) -> None:
        """For a version that begins; `registration`: in the place of another one.

        Raises FiltersTooCostly with the stream's id where that takes more than before, and more
        than there is.
        """
        before = self._before.get(registration, {})
        for stream in streams if cost else ():
            used = self._used_on(stream) - before.get(stream, 0)
            if cost > before.get(stream, 0) and used + cost > limits.FILTERS_TRIED_MAX:
                name = self._connection.execute(SQL["stream_name"], (stream,)).fetchone()
                raise FiltersTooCostly(cost=cost, used=used, stream=name[0] if name else "")
        self.free(registration)
        if cost:
            self._planned.update(dict.fromkeys(streams, cost))

    def free(self, registration: int) -> None:
        """For one that ends."""
        if registration in self._before:
            self._planned.subtract(self._before.pop(registration))

    def _used_on(self, stream: int) -> int:
        if stream not in self._used:
            row = self._connection.execute(SQL["used"], (self._client_id, stream)).fetchone()
            self._used[stream] = row[0] if row else 0
        return self._used[stream] + self._planned[stream]
