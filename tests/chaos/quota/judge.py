"""What a quota run must show, from the readers' journals, the emitters' receipts and the rows of
`segments`, which are never deleted.
"""

from typing import Any, NamedTuple

from tests.chaos.quota.flow import Flow
from tests.chaos.quota.readers import Journal

SHOWN = 3  # of a kind of problem


class Segment(NamedTuple):
    """A row of `segments`."""

    uuid: str
    first: int
    last: int  # of the open one, the head
    tier: str
    left_at_s: float | None  # since 1970


class Verdict(NamedTuple):
    """Of one reader."""

    expected: int
    seen: int
    missed: int  # expected, within announced gaps
    problems: list[str]


def judge(journal: Journal, flow: Flow, segments: list[Segment]) -> Verdict:
    """Every event that the reader wants was seen once, in order, or lies in a gap that was
    announced; each gap is exactly what was dropped.
    """
    problems = list(journal.problems)
    numbers = [sequence for _, sequence in journal.seen]
    if numbers != sorted(set(numbers)):
        problems.append("not in order, or not once")
    expected = {n for n, place in flow.places.items() if journal.interest.wants(place.number)}
    seen = set(numbers)
    inside = {n for gap in journal.gaps for n in range(gap.first, gap.last + 1)}
    missing = sorted(expected - seen - inside)
    unexpected = sorted(seen - expected)
    twice = sorted(seen & inside)
    wrong = [
        (segment, n)
        for segment, n in journal.seen
        if n in flow.places and flow.places[n].segment != segment
    ]
    for what, found in (
        ("missing without a word", missing),
        ("unexpected", unexpected),
        ("seen though announced as missing", twice),
        ("in another segment than its receipt says", wrong),
    ):
        if found:
            problems.append(f"{len(found)} events {what}: {found[:SHOWN]}")
    problems += [said for gap in journal.gaps for said in _gap_problems(gap, segments)]
    return Verdict(len(expected), len(seen & expected), len((expected - seen) & inside), problems)


def _gap_problems(gap: Any, segments: list[Segment]) -> list[str]:
    """A gap ends where a segment that was held begins, and all that it covers was dropped."""
    said = f"gap {gap.first}-{gap.last}"
    problems = []
    for segment in segments:
        overlaps = segment.first <= gap.last and segment.last >= gap.first
        if overlaps and (segment.left_at_s is None or segment.left_at_s > gap.received_at_s):
            problems.append(f"{said}: {segment.first}-{segment.last} was still held")
        if overlaps and segment.last > gap.last:
            problems.append(f"{said} ends inside the segment {segment.first}-{segment.last}")
    return problems[:SHOWN]
