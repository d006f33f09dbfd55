"""The judge of quota runs finds each planted mistake, and nothing where there is none."""

import random
from collections.abc import Callable

import pytest

from tests.chaos.events import Interest, color_of
from tests.chaos.quota.flow import Flow, Place
from tests.chaos.quota.judge import Segment, judge
from tests.chaos.quota.readers import Gap, Journal

RED = Interest(color="red")
HEARD_S = 1_000.0
SEGMENTS = [
    Segment("one", 1, 30, "dropped", HEARD_S - 1),
    Segment("two", 31, 60, "live", None),
]


def read_journal() -> tuple[Journal, Flow]:
    """Return a journal of 60 events: a gap for the first segment, the red events of the second."""
    flow = Flow("s", 1.0, random.Random(1))
    for number in range(1, 61):
        flow.places[number] = Place("one" if number <= 30 else "two", number)
    journal = Journal("reader", "s", RED)
    journal.gaps.append(Gap(1, 30, HEARD_S))
    journal.seen += [("two", n) for n in range(31, 61) if color_of(n) == "red"]
    return journal, flow


def test_what_is_as_promised_has_no_problems() -> None:
    journal, flow = read_journal()
    verdict = judge(journal, flow, SEGMENTS)
    assert verdict.problems == []
    assert (verdict.expected, verdict.seen, verdict.missed) == (20, 10, 10)


def _out_of_order(journal: Journal) -> None:
    journal.seen[3], journal.seen[4] = journal.seen[4], journal.seen[3]


MISTAKES: dict[str, Callable[[Journal], object]] = {
    "missing without a word": lambda journal: journal.seen.pop(5),
    "not once": lambda journal: journal.seen.insert(5, journal.seen[5]),
    "not in order": _out_of_order,
    "unexpected": lambda journal: journal.seen.append(("two", 61)),
    "though announced as missing": lambda journal: journal.seen.insert(0, ("one", 3)),
    "another segment": lambda journal: journal.seen.__setitem__(0, ("one", journal.seen[0][1])),
    "still held": lambda journal: journal.gaps.append(Gap(31, 60, HEARD_S)),
    "ends inside": lambda journal: journal.gaps.__setitem__(0, Gap(1, 25, HEARD_S)),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_planted_mistake_is_found(mistake: str) -> None:
    journal, flow = read_journal()
    if mistake == "unexpected":
        flow.places[61] = Place("two", 61 if color_of(61) != "red" else 62)
    MISTAKES[mistake](journal)
    problems = judge(journal, flow, SEGMENTS).problems
    assert problems
    if mistake not in ("not once", "not in order"):
        assert any(mistake in problem for problem in problems), problems
