"""The judge of callbacks finds each kind of mistake, planted by hand."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.chaos.callbacks.arrivals import Arrivals
from tests.chaos.callbacks.changes import Change, changes_wrong
from tests.chaos.callbacks.expected import ExpectedDeliveries
from tests.chaos.callbacks.judge import CallbackJudge
from tests.chaos.callbacks.oracle import Version, expected, remainders_of
from tests.chaos.callbacks.sink import content_wrong
from tests.chaos.callbacks.tables import Checkpoint, Row, Segment, Shot, StreamShot
from tests.chaos.events import PERIOD, Name, event_of
from tests.chaos.hub import HubUnderTest

ENDPOINT, OTHER = 5, 6
SEGMENT = Segment(9, 2, "seg", 4, 1, None)
EVENTS = [(f"e.1.{number}", SEGMENT.id) for number in range(1, 7)]  # 1 to 6: all ticks
RED = remainders_of({"attributes": {"color": "red"}})  # 3 and 6
ALL = remainders_of({"type": "tick"})


def version(id: int, since: int, until: int | None, expected_rows: frozenset[int] = ALL) -> Version:
    return Version(id, 10 * id, 1, {"alpha": (since, until)}, expected_rows, ENDPOINT)


def row(sequence: int, *registrations: int, **other: Any) -> Row:
    return Row(ENDPOINT, SEGMENT.id, sequence, SEGMENT.partition_id, list(registrations))._replace(
        **other
    )


VERSIONS = [version(1, 1, 4), version(2, 0, None, RED)]  # 2, 3, 4 and 3, 6
RIGHT = [row(2, 10), row(3, 10, 20), row(4, 10), row(6, 20)]


def shot(rows: list[Row], *, sequence: int = 6, endpoint: int = 0, segment: str = "seg") -> Shot:
    mark = Checkpoint(segment, sequence, endpoint)
    events = EVENTS[: sequence + 1]
    return Shot({9: SEGMENT}, VERSIONS, {}, {"alpha": StreamShot(mark, events, rows)}, 0)


def judged(found: Shot) -> list[str]:
    return ExpectedDeliveries(("alpha",)).judge(found)


# --- the oracle ---


def test_pairs_are_compared_by_value_and_by_path() -> None:
    assert frozenset((3, 6, 9, 12, 15)) == frozenset(n for n in RED if 0 < n < 16)
    assert remainders_of({"attributes": {"size": 3.0}}) == {3, 11, 19}
    assert remainders_of({"type": "tick", "attributes": {"place.city": "Basel", "size": 4}}) == {
        4,
        12,
    }
    assert remainders_of({"domain": "elsewhere"}) == frozenset()
    assert remainders_of({"attributes": {"nothing": 1}}) == frozenset()
    assert len(remainders_of({})) == PERIOD


def test_bounds_exclude_the_first_and_include_the_last() -> None:
    assert expected(VERSIONS, "alpha", 1, [1, 2, 3, 4, 5, 6]) == {
        (ENDPOINT, 2): [10],
        (ENDPOINT, 3): [10, 20],
        (ENDPOINT, 4): [10],
        (ENDPOINT, 6): [20],
    }
    assert expected(VERSIONS, "alpha", 4, [4, 5, 6]) == {(ENDPOINT, 4): [10], (ENDPOINT, 6): [20]}
    assert expected(VERSIONS, "beta", 1, [1, 2, 3]) == {}


# --- deliveries and checkpoints ---


def test_deliveries_that_are_right_are_right_at_any_moment() -> None:
    assert judged(shot(RIGHT)) == []
    assert judged(shot(RIGHT[:2], sequence=3)) == []
    assert judged(shot(RIGHT[:1], sequence=2)) == []
    assert judged(shot(RIGHT[:2], sequence=2, endpoint=ENDPOINT)) == []  # in the middle of an event


@pytest.mark.parametrize(
    ("found", "word"),
    [
        (shot([row(2, 10), row(3, 10, 20), row(6, 20)]), "4 to endpoint 5: no delivery"),
        (shot([*RIGHT, row(4, 10)]), "alpha 4: 2 deliveries"),
        (shot([*RIGHT, row(4, 10, partition_id=3)]), "alpha 4: 2 deliveries"),
        (shot([row(2, 10), row(3, 10), row(4, 10), row(6, 20)]), r"\[10\] instead of \[10, 20\]"),
        (shot([*RIGHT, row(5, 10)]), "alpha 5 to endpoint 5: no registration"),
        (shot([*RIGHT, row(3, 10, 20, endpoint=OTHER)]), "endpoint 6: no registration"),
        (shot(RIGHT[:2], sequence=4), "4 to endpoint 5: no delivery"),  # a premature checkpoint
        (shot(RIGHT[:1], sequence=2, endpoint=ENDPOINT), "3 to endpoint 5: no delivery"),
        (shot(RIGHT, sequence=4), "after the checkpoint"),
        (shot(RIGHT[:2], sequence=2, endpoint=ENDPOINT - 1), "after the checkpoint"),
        (shot(RIGHT, segment="other"), "names no segment"),
        (shot([row(2, 10, segment_id=8), *RIGHT[1:]]), "but the segment is None"),
        (shot([*RIGHT, row(0, 10, gap_first=0)]), "endpoint 5 has a gap notice from 0 to 0"),
        (shot([row(2, 10, gap_first=2), *RIGHT[1:]]), "2 to endpoint 5: no delivery"),
    ],
)
def test_a_planted_mistake_in_the_tables_is_found(found: Shot, word: str) -> None:
    problems = judged(found)
    assert [problem for problem in problems if re.search(word, problem)], problems


def test_a_checkpoint_that_passes_what_is_not_there_or_goes_back_is_found() -> None:
    far = shot(RIGHT, sequence=9)
    [problem] = judged(far)
    assert "no event 7" in problem
    expected = ExpectedDeliveries(("alpha",))
    assert expected.judge(shot(RIGHT)) == []
    assert expected.known == {"alpha": 6}
    [problem] = expected.judge(shot([], sequence=4))
    assert "went back to 4" in problem


def test_judgements_go_on_from_the_last_one() -> None:
    expected = ExpectedDeliveries(("alpha",))
    assert expected.judge(shot(RIGHT[:2], sequence=3)) == []
    later = StreamShot(Checkpoint("seg", 6, 0), EVENTS[3:], RIGHT[2:])
    assert expected.judge(shot([])._replace(streams={"alpha": later})) == []
    assert expected.expected[ENDPOINT, "alpha", 3] == (10, 20)
    assert expected.segments["alpha"] == ["seg"] * 6


# --- the sink ---


def arrival(number: int, sequence: int, **other: Any) -> list[Any]:
    fields = {
        "endpoint": "lane",
        "id": f"msg_{sequence}",
        "registrations": [10],
        "digest": f"d{sequence}",
        "wrong": "",
        **other,
    }
    place = ["alpha", "seg", sequence, fields["registrations"]]
    rest = [fields["digest"], 0.5, fields["wrong"], fields.get("value", "")]
    return ["a", number, 1.0, fields["endpoint"], fields["id"], *place, *rest]


def answer(number: int, status: int = 200) -> list[Any]:
    return ["b", number, 1.0, status]


@pytest.fixture
def arrivals(tmp_path: Path) -> Iterator[Arrivals]:
    found = Arrivals(tmp_path / "sink.ndjson", frozenset({"lane"}))
    yield found
    found.close()


def test_a_repeat_is_counted_and_nothing_more(arrivals: Arrivals) -> None:
    for line in (arrival(1, 4), answer(1, 500), arrival(2, 4), answer(2), arrival(3, 7), answer(3)):
        arrivals.take(line)
    assert arrivals.taken_problems() == []
    assert (arrivals.count, arrivals.repeats) == (3, 1)
    assert set(arrivals.taken) == {("lane", "alpha", 4), ("lane", "alpha", 7)}


@pytest.mark.parametrize(
    ("lines", "word"),
    [
        ([arrival(1, 7), answer(1), arrival(2, 4)], "4 arrived after 7"),
        (
            [arrival(1, 4), answer(1, 500), arrival(2, 7), answer(2), arrival(3, 4), answer(3)],
            "4 was answered 200 after 7",
        ),
        ([arrival(1, 4), arrival(2, 4, id="msg_other")], "came again otherwise"),
        ([arrival(1, 4), arrival(2, 4, digest="other")], "came again otherwise"),
        ([arrival(1, 4), arrival(2, 4, registrations=[10, 20])], "came again otherwise"),
        ([arrival(1, 4), arrival(2, 7, id="msg_4")], "have the id msg_4"),
        ([arrival(1, 4, endpoint="all"), arrival(2, 4)], "have the id msg_4"),
        ([arrival(1, 4, id="")], "no webhook-id"),
        ([arrival(1, 4, wrong="signature: none")], "signature"),
    ],
)
def test_a_planted_mistake_at_the_sink_is_found(
    arrivals: Arrivals, lines: list[list[Any]], word: str
) -> None:
    for line in lines:
        arrivals.take(line)
    [problem] = arrivals.taken_problems()
    assert word in problem


def test_repeats_in_a_lane_and_any_order_elsewhere_are_right(arrivals: Arrivals) -> None:
    for line in (arrival(1, 4), answer(1), arrival(2, 7), answer(2), arrival(3, 4), answer(3)):
        arrivals.take(line)
    for line in (arrival(4, 9, endpoint="all"), arrival(5, 8, endpoint="all")):
        arrivals.take(line)
    assert arrivals.taken_problems() == []


def test_half_a_line_waits_for_its_rest(arrivals: Arrivals, tmp_path: Path) -> None:
    line = orjson.dumps(arrival(1, 4), option=orjson.OPT_APPEND_NEWLINE)
    with (tmp_path / "sink.ndjson").open("ab", buffering=0) as file:
        file.write(line[:20])
        assert arrivals.read_on() == 0
        file.write(line[20:] + line[:9])
        assert arrivals.read_on() == 1
    assert arrivals.firsts.keys() == {("lane", "alpha", 4)}


def test_an_event_that_is_not_as_it_was_made_is_found() -> None:
    event = {**event_of(Name("e", 1, 3), at=0.5, with_id=False), "source": "chaos", "node": "here"}
    body = dict.fromkeys(("stream", "segment", "sequence", "appended_at", "registrations"))
    assert content_wrong({**body, "event": event}) == ""
    assert "body" in content_wrong({**body, "event": {**event, "body": "y"}})
    assert "type" in content_wrong({**body, "event": {**event, "type": "noise"}})
    assert "colour" in content_wrong({**body, "event": {**event, "colour": "red"}})
    assert "fields" in content_wrong({"event": event})


def test_what_never_arrived_or_came_uninvited_is_found(arrivals: Arrivals) -> None:
    hub = HubUnderTest.__new__(HubUnderTest)
    judge = CallbackJudge(hub, ("alpha",), {"lane": ENDPOINT})
    assert judge.expected.judge(shot(RIGHT)) == []
    for number, (sequence, registrations) in enumerate([(2, [10]), (3, [10]), (5, [10])]):
        arrivals.take(arrival(number, sequence, registrations=registrations))
        arrivals.take(answer(number))
    problems = judge.arrivals_wrong(arrivals, list(arrivals.firsts))
    assert [problem for problem in problems if "came for (10,) instead of (10, 20)" in problem]
    assert [problem for problem in problems if "5 reached lane, which did not ask" in problem]
    assert len(problems) == 2
    assert judge.missing(arrivals) == ["alpha 4 never reached lane", "alpha 6 never reached lane"]
    arrivals.take(arrival(7, 9))
    [problem] = judge.arrivals_wrong(arrivals, [("lane", "alpha", 9)])
    assert "and the checkpoint is 6" in problem


# --- changes ---

BEGAN = Change(10, 1, ("alpha",), {"type": "tick"}, ENDPOINT, {"alpha": 1}, {"alpha": 1})
ENDED = Change(10, 1, ("alpha",), {"type": "tick"}, ENDPOINT, {}, {"alpha": 4}, ends=True)
STORED = {1: {"type": "tick"}}


def test_changes_that_are_as_acknowledged_are_right() -> None:
    assert changes_wrong([BEGAN, ENDED], VERSIONS, STORED) == []


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (BEGAN._replace(registration=30), "is nowhere"),
        (BEGAN._replace(since={"alpha": 2}), "the answer said"),
        (BEGAN._replace(filter={"type": "noise"}), "is stored as"),
        (BEGAN._replace(endpoint=OTHER), "is stored as"),
        (BEGAN._replace(before={"alpha": 2}), "before it was asked"),
        (ENDED._replace(before={"alpha": 5}), "before it was asked"),
        (ENDED._replace(registration=20), "goes on"),
    ],
)
def test_a_change_that_is_not_as_acknowledged_is_found(change: Change, word: str) -> None:
    [problem] = changes_wrong([change], VERSIONS, STORED)
    assert word in problem
