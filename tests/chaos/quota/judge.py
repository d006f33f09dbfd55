"""The conditions of a quota run, checked with the readers' journals, the emitters' receipts and the
rows of `segments`, which are never deleted.
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
    """The judgement of one reader."""

    expected: int
    seen: int
    missed: int  # expected, within announced gaps
    problems: list[str]


def judge(journal: Journal, flow: Flow, segments: list[Segment]) -> Verdict:
    """Check that the reader received every matching event once, in order, or that it lies in an
    announced gap, and that each gap is exactly what was dropped.
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
    """Check that a gap ends at the start of a retained segment, and that all segments in it were
    dropped.
    """
    said = f"gap {gap.first}-{gap.last}"
    problems = []
    for segment in segments:
        overlaps = segment.first <= gap.last and segment.last >= gap.first
        if overlaps and (segment.left_at_s is None or segment.left_at_s > gap.received_at_s):
            problems.append(f"{said}: {segment.first}-{segment.last} was still held")
        if overlaps and segment.last > gap.last:
            problems.append(f"{said} ends inside the segment {segment.first}-{segment.last}")
    return problems[:SHOWN]
