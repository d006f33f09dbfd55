"""The judges of `python -m tests.chaos kafka` find each kind of mistake, planted by hand."""

import os
import sys

import pytest

from tests.chaos.kafka.brokers import MISSING
from tests.chaos.kafka.judge import (
    Copy,
    ReadRecord,
    StoredEvent,
    copies_wrong,
    events_wrong,
    records_wrong,
    repeats,
)
from tests.chaos.kafka.writers import Place, Written
from tests.forked import run

PLACES = [Place("plain", number) for number in range(6)]
RECORDS = [ReadRecord((n % 2, n // 2), place.key, place) for n, place in enumerate(PLACES)]
EVENTS = [StoredEvent(n, one.where, one.place.key, one.place) for n, one in enumerate(RECORDS, 1)]
COPIES = [Copy(n % 2, f"d{one.sequence}", one.sequence, one.place) for n, one in enumerate(EVENTS)]
JOURNAL = Written({*PLACES}, {Place("exact", 1)})


def test_what_is_right_has_no_problem_and_repeats_are_counted() -> None:
    assert records_wrong(RECORDS, [JOURNAL]) == []
    assert events_wrong(RECORDS, EVENTS) == []
    assert copies_wrong(EVENTS, COPIES) == []
    assert copies_wrong(EVENTS, [*COPIES, COPIES[1], COPIES[0]]) == []
    assert repeats([*COPIES, COPIES[1], COPIES[0]]) == 2


@pytest.mark.parametrize(
    ("records", "words"),
    [
        (RECORDS[1:], "was stored, and is gone"),
        ([*RECORDS, RECORDS[0]], "is in the topic 2 times"),
        ([*RECORDS, ReadRecord((0, 9), "k", Place("exact", 1))], "was aborted, and is read"),
    ],
)
def test_a_topic_that_lost_records_is_found(records: list[ReadRecord], words: str) -> None:
    [problem] = records_wrong(records, [JOURNAL])
    assert words in problem


@pytest.mark.parametrize(
    ("events", "words"),
    [
        (EVENTS[:-1], "has no event"),
        ([*EVENTS, EVENTS[-1]], "is the record of 2 events"),
        ([EVENTS[2], *EVENTS[:2], *EVENTS[3:]], "0 of 0 comes after 1"),
        ([EVENTS[0]._replace(key="other"), *EVENTS[1:]], "event 1 is not the record"),
        ([EVENTS[0]._replace(place=PLACES[4]), *EVENTS[1:]], "event 1 is not the record"),
    ],
)
def test_records_that_are_no_events_of_theirs_are_found(
    events: list[StoredEvent], words: str
) -> None:
    [problem] = events_wrong(RECORDS, events)
    assert words in problem


def test_events_of_a_key_that_are_out_of_order_are_found() -> None:
    moved = [one._replace(key="k") for one in (*EVENTS[1:2], *EVENTS[:1], *EVENTS[2:])]
    records = [one._replace(key="k") for one in RECORDS]
    assert events_wrong(records, moved) == ["0 of 'k' comes after 1"]


@pytest.mark.parametrize(
    ("copies", "words"),
    [
        (COPIES[1:], "event 1 did not arrive"),
        ([*COPIES, COPIES[-1]._replace(delivery="d9")], "event 6 has 2 deliveries"),
        ([COPIES[2], *COPIES[:2], *COPIES[3:]], "1 of 0 comes after 3"),
        ([COPIES[0]._replace(place=PLACES[1]), *COPIES[1:]], "delivery d1 is not event 1"),
    ],
)
def test_events_that_did_not_arrive_are_found(copies: list[Copy], words: str) -> None:
    [problem] = copies_wrong(EVENTS, copies)
    assert words in problem


def test_without_a_broker_the_command_says_what_to_do() -> None:
    argv = [sys.executable, "-m", "tests.chaos", "kafka", "--class-path", ""]
    done = run(argv, os.environ)
    assert done.returncode == 2
    assert MISSING in done.stderr
