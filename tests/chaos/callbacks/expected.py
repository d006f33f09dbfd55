"""Compares the deliveries in the tables with the oracle, at any moment of a run.

For every stream: up to the checkpoint each event has exactly the expected rows, and beyond it there
is none. A comparison continues from the last one.
"""

from collections import Counter
from collections.abc import Mapping

from tests.chaos.callbacks.oracle import Expected, Version, expected, remainders
from tests.chaos.callbacks.tables import Row, Segment, Shot, StreamShot
from tests.chaos.judge import shorten

DeliveryKey = tuple[int, str, int]  # endpoint, stream, sequence


class ExpectedDeliveries:
    """The expected deliveries, as far as the tables were compared. `names` and `segments` of a
    stream: sequence n is at n - 1.
    """

    def __init__(self, streams: tuple[str, ...]) -> None:
        self.names: dict[str, list[str]] = {name: [] for name in streams}
        self.segments: dict[str, list[str]] = {name: [] for name in streams}
        self.expected: dict[DeliveryKey, tuple[int, ...]] = {}

    @property
    def known(self) -> dict[str, int]:
        """The sequence up to which the tables were found right, by stream."""
        return {name: len(names) for name, names in self.names.items()}

    def forget(self) -> None:
        """Start from the beginning the next time."""
        for known in (*self.names.values(), *self.segments.values()):
            known.clear()
        self.expected.clear()

    def judge(self, shot: Shot) -> list[str]:
        """Return what is wrong in a snapshot taken with `known`."""
        problems = []
        for stream, found in shot.streams.items():
            if found.checkpoint is not None:
                problems += self._stream(stream, found, shot)
            elif found.rows:
                problems.append(f"{stream}: {len(found.rows)} deliveries and no checkpoint")
        return problems

    def _stream(self, stream: str, found: StreamShot, shot: Shot) -> list[str]:
        assert found.checkpoint is not None
        known = len(self.names[stream])
        upto = found.checkpoint.sequence
        if upto < known:
            return [f"{stream}: the checkpoint went back to {upto}, it was {known}"]
        if len(found.events) < upto - known:
            return [f"{stream}: matched up to {upto}, but no event {known + len(found.events) + 1}"]
        expected_rows = self._expected_rows(stream, found, shot.versions)
        problems = rows_wrong(stream, expected_rows, found.rows, shot.segments)
        problems += _mark_wrong(stream, found, shot.segments)
        events = found.events[: upto - known]
        self.names[stream] += [name for name, _ in events]
        self.segments[stream] += [shot.segments[segment].uuid for _, segment in events]
        for (endpoint, sequence), registrations in expected_rows.items():
            if sequence <= upto:
                self.expected[endpoint, stream, sequence] = tuple(registrations)
        return shorten(problems)

    def _expected_rows(self, stream: str, found: StreamShot, versions: list[Version]) -> Expected:
        """Return the rows that must exist: of the event after the checkpoint those up to its
        endpoint.
        """
        assert found.checkpoint is not None
        _, upto, endpoint = found.checkpoint
        first = len(self.names[stream]) + 1
        events = remainders(name for name, _ in found.events)
        expected_rows = expected(versions, stream, first, events)
        return {
            key: registrations
            for key, registrations in expected_rows.items()
            if key[1] <= upto or (key[1] == upto + 1 and key[0] <= endpoint)
        }


def rows_wrong(
    stream: str, expected_rows: Expected, rows: list[Row], segments: Mapping[int, Segment]
) -> list[str]:
    """Return where deliveries differ from the expected ones."""
    problems = []
    counts = Counter((row.endpoint, row.sequence) for row in rows if row.gap_first is None)
    problems += [
        f"{stream} {sequence}: {count} deliveries to endpoint {endpoint}"
        for (endpoint, sequence), count in counts.items()
        if count > 1
    ]
    for row in rows:
        if row.gap_first is not None:  # no round drops anything
            gap = f"{row.gap_first} to {row.sequence}"
            problems.append(f"{stream}: endpoint {row.endpoint} has a gap notice from {gap}")
            continue
        registrations = expected_rows.get((row.endpoint, row.sequence))
        at = f"{stream} {row.sequence} to endpoint {row.endpoint}"
        if registrations is None:
            problems.append(f"{at}: no registration matches it, or it is after the checkpoint")
        elif registrations != row.registrations:
            problems.append(f"{at}: for {row.registrations} instead of {registrations}")
        problems += _place_wrong(at, row, segments)
    missing = expected_rows.keys() - counts.keys()
    problems += [f"{stream} {sequence} to endpoint {endpoint}: no delivery, though it was matched"
                 for endpoint, sequence in sorted(missing)]  # fmt: skip
    return problems


def _place_wrong(at: str, row: Row, segments: Mapping[int, Segment]) -> list[str]:
    segment = segments.get(row.segment_id)
    if segment is None or segment.partition_id != row.partition_id:
        return [f"{at}: {row}, but the segment is {segment}"]
    if row.sequence < segment.first or (segment.last and row.sequence > segment.last):
        return [f"{at}: {row} lies outside {segment}"]
    return []


def _mark_wrong(stream: str, found: StreamShot, segments: Mapping[int, Segment]) -> list[str]:
    """Check that the checkpoint's segment is the one of its event (or where it started)."""
    assert found.checkpoint is not None
    uuid, upto, _ = found.checkpoint
    for segment in segments.values():
        if segment.uuid == uuid:
            inside = segment.first - 1 <= upto and (segment.last is None or upto <= segment.last)
            return [] if inside else [f"{stream}: checkpoint {found.checkpoint} not in {segment}"]
    return [f"{stream}: checkpoint {found.checkpoint} names no segment"]
