"""Ids of events: unique, and ordered by timestamp, then sequence (FOX-07, FOX-09)."""

import pytest

from eventhub.base.clock import ManualClock
from eventhub.event.identity import EventId, IdIssuer


@pytest.mark.req("FOX-09")
def test_ids_order_by_timestamp_and_then_by_sequence() -> None:
    t0, t1 = 10, 11
    assert EventId("a", t0, 3, 0).order < EventId("a", t1, 1, 0).order
    assert EventId("a", t0, 2, 0).order < EventId("a", t0, 3, 0).order


@pytest.mark.req("FOX-08")
def test_the_sequence_restarts_with_a_new_timestamp() -> None:
    clock = ManualClock()
    t0 = clock.now_us()
    issuer = IdIssuer(client="c", clock=clock, incarnation=1, sequence_max=3)
    clock.advance_s(1)
    made = [issuer.next() for _ in range(4)]
    t1 = made[3].timestamp_us
    assert [one.order for one in made] == [(t0, 1), (t0, 2), (t0, 3), (t1, 1)]
    assert t1 == t0 + 1_000_000
    assert {one.incarnation for one in made} == {1}


@pytest.mark.req("FOX-08")
def test_the_timestamp_rises_even_if_the_clock_stops_or_is_set_back() -> None:
    clock = ManualClock()
    issuer = IdIssuer(client="c", clock=clock, sequence_max=3)
    made = []
    for step_s in (0, 1, -5, 5, -1, 0):
        clock.advance_s(step_s)
        made += [issuer.next() for _ in range(100)]
    assert len(set(made)) == 600
    assert [one.order for one in made] == sorted(one.order for one in made)


@pytest.mark.req("FOX-07")
def test_a_clock_set_back_repeats_no_id() -> None:
    clock = ManualClock()
    issuer = IdIssuer(client="c", clock=clock)
    made = []
    for step_s in (0, 1, -5, 5, -1, 0):
        clock.advance_s(step_s)
        made += [issuer.next() for _ in range(100)]
    assert len(set(made)) == 600
    assert [one.sequence for one in made] == list(range(1, 601))


def test_each_start_of_a_producer_is_a_new_incarnation() -> None:
    clock = ManualClock()
    first = IdIssuer(client="c", clock=clock).next()
    clock.advance_s(1)
    second = IdIssuer(client="c", clock=clock).next()
    assert first.sequence == second.sequence == 1
    assert first.incarnation < second.incarnation
    assert IdIssuer(client="c", clock=clock, incarnation=3).next().incarnation == 3


def test_the_wire_format_omits_the_client() -> None:
    assert EventId("c", 1, 2, 3).wire() == {"timestamp": 1, "sequence": 2, "incarnation": 3}
