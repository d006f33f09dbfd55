"""A registration as it is shown: its row, the names of its streams, and its filter read. Plain."""

from typing import Any, NamedTuple

import orjson

from registrations.filters import PAIRS, Filter, stored_filter
from registrations.rows import Registration, Vector


class Pairs(NamedTuple):
    """The fields of the pairs language, None for what is not given."""

    domain: str | None
    type: str | None
    application: str | None
    attributes: dict[str, Any]


class Shown:
    """`since`: the places from which it holds on its streams; `secret`: of the endpoint that was
    made for it; `read`: its filter, where that was read before.
    """

    def __init__(
        self,
        row: Registration,
        names: dict[int, str],
        since: Vector,
        secret: str | None = None,
        read: Filter | None = None,
    ) -> None:
        self.row, self.names, self.since, self.secret = row, names, since, secret
        self.read = read or stored_filter(row.language, row.filter_json)
        self.reading = self.read.reading()
        given = self.read.source if self.read.language == PAIRS else {}
        attributes = given.get("attributes") or {}
        self.pairs = Pairs(
            given.get("domain"), given.get("type"), given.get("application"), attributes
        )

    @property
    def id(self) -> int:
        return self.row.id

    @property
    def streams(self) -> list[str]:
        return [self.names[id] for id in self.row.streams]

    @property
    def total(self) -> int:
        """The number of pairs (SUN-08)."""
        return len(self.pairs.attributes)

    @property
    def filter(self) -> Any:
        return None if self.read.language == PAIRS else self.read.source

    @property
    def warnings(self) -> list[str]:
        found = self.reading.warnings
        return found if self.row.equal_to is None else [*found, "equal_to"]

    @property
    def report(self) -> Any:
        return None if self.row.report_json is None else orjson.loads(self.row.report_json)

    @property
    def places(self) -> dict[str, dict[str, Any]]:
        """By stream, the place in it after which the version holds."""
        since = self.since
        return {self.names[id]: since[id]._asdict() for id in self.row.streams if id in since}
