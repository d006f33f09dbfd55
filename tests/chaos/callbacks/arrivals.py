"""The arrivals that the sink wrote, as its file grows: first arrivals, repeats, and mistakes
visible without an oracle.

Two properties need no oracle: the identity of a delivery (the same event and endpoint have the same
id and body) and the order of lanes.
"""

from array import array
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any, NamedTuple

import orjson

SHOWN_MAX = 5

Key = tuple[str, str, int]  # endpoint, stream, sequence
Lane = tuple[str, str, str]  # endpoint, stream, value of the key by which it is ordered


class First(NamedTuple):
    """The first arrival of an event at an endpoint. Times are by the machine's monotonic clock."""

    at: float
    tried_at: float  # when the event was first offered to the hub
    webhook_id: str
    segment: str
    registrations: tuple[int, ...]
    digest: str


class Landing(NamedTuple):
    """A first arrival, for measuring times."""

    at: float
    tried_at: float
    endpoint: str
    stream: str


class Arrivals:
    """The arrivals read so far. `lanes` are the endpoints with ordered lanes, by stream or by the
    value that the sink names; `read_on` reads what the sink wrote since.
    """

    def __init__(self, path: Path, lanes: frozenset[str]) -> None:
        self.firsts: dict[Key, First] = {}
        # when it was answered 200, or taken without that the answer got through
        self.taken: dict[Key, float] = {}
        self.accepted: Counter[str] = Counter()  # of them, by endpoint
        self.requests: dict[str, array[float]] = {}  # times of all requests by endpoint
        self.most_at_once: dict[str, int] = {}  # requests under way at one endpoint
        self.landings: list[Landing] = []
        self.count = 0
        self.answers: dict[int, int] = {}  # by status
        self.problems: list[str] = []
        self._lanes = lanes
        self._ids: dict[str, Key] = {}
        self._open: dict[int, Key] = {}  # arrivals without an answer yet, by number
        self._under_way: Counter[str] = Counter()
        self._lane_of: dict[Key, Lane] = {}
        self._arrived_to: dict[Lane, int] = {}
        self._taken_to: dict[Lane, int] = {}
        path.touch()
        self._file: IO[bytes] = path.open("rb")
        self._rest = b""

    @property
    def repeats(self) -> int:
        return self.count - len(self.firsts)

    def add_lanes(self, names: Iterable[str]) -> None:
        """Add endpoints with ordered lanes."""
        self._lanes |= frozenset(names)

    def restart_lanes(self, names: Iterable[str]) -> None:
        """Let the lanes of endpoints start again, because all their deliveries are dead letters and
        will be sent again: before the last of them was one, it was first in its lane, and tried.
        """
        restarted = {*names}
        for lane in [each for each in self._arrived_to if each[0] in restarted]:
            del self._arrived_to[lane]

    def close(self) -> None:
        self._file.close()

    def read_on(self) -> int:
        """Read new lines; return how many."""
        *lines, self._rest = (self._rest + self._file.read()).split(b"\n")
        for line in lines:
            self.take(orjson.loads(line))
        return len(lines)

    def take(self, line: list[Any]) -> None:
        """Process one line of the sink."""
        if line[0] == "a":
            self._arrived(line)
        else:
            self._answered(*line[1:])

    def taken_problems(self) -> list[str]:
        """Return the problems found since the last call."""
        found, self.problems = self.problems, []
        if len(found) <= SHOWN_MAX:
            return found
        return [*found[:SHOWN_MAX], f"and {len(found) - SHOWN_MAX} more at the sink"]

    def _arrived(self, line: list[Any]) -> None:
        _, number, at, endpoint, webhook_id, stream, segment, sequence, registrations, *rest = line
        digest, tried_at, wrong, value = rest
        key = (endpoint, stream, sequence)
        self.count += 1
        self.requests.setdefault(endpoint, array("d")).append(at)
        self._open[number] = key
        self._under_way[endpoint] += 1
        most = max(self.most_at_once.get(endpoint, 0), self._under_way[endpoint])
        self.most_at_once[endpoint] = most
        if wrong:
            self.problems.append(f"{key}: {wrong}")
        first = First(at, tried_at, webhook_id, segment, tuple(registrations), digest)
        known = self.firsts.setdefault(key, first)
        if known is first:
            self._lane_of[key] = (endpoint, stream, value)
            self._arrived_first(key, first)
        elif known[2:] != first[2:]:
            self.problems.append(f"{key} came again otherwise: {known}, now {first}")

    def _arrived_first(self, key: Key, first: First) -> None:
        endpoint, stream, _ = key
        self.landings.append(Landing(first.at, first.tried_at, endpoint, stream))
        other = self._ids.setdefault(first.webhook_id, key)
        if other != key:
            self.problems.append(f"{key} and {other} have the id {first.webhook_id}")
        if not first.webhook_id:
            self.problems.append(f"{key} has no webhook-id")
        if endpoint in self._lanes:
            self._follows(self._arrived_to, key, "arrived")

    def _answered(self, number: int, at: float, status: int) -> None:
        key = self._open.pop(number)
        self._under_way[key[0]] -= 1
        self.answers[status] = self.answers.get(status, 0) + 1
        if status != 200 or key in self.taken:
            return
        self.taken[key] = at
        self.accepted[key[0]] += 1
        if key[0] in self._lanes:
            self._follows(self._taken_to, key, "was answered 200")

    def _follows(self, last: dict[Lane, int], key: Key, did: str) -> None:
        """Check that the first arrivals of a lane ascend, and the first successes too."""
        sequence, lane = key[2], self._lane_of[key]
        before = last.get(lane, 0)
        if sequence < before:
            self.problems.append(f"lane {' '.join(lane)}: {sequence} {did} after {before}")
        last[lane] = max(before, sequence)
