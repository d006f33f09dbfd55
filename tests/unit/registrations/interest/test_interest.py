"""Checks of interest: fields that the hub sets, time slices of the event loop, and the throttle of
closures for audiences.
"""

import asyncio
from typing import Any

import pytest

from eventhub.base import limits
from eventhub.base.errors import EventHubError
from eventhub.event import protobuf_codec
from eventhub.event.inbound import from_objects, stored_bytes
from registrations.filters.closure.shapes import interest_in, parse_shape, shape_of
from registrations.filters.closure.union import Closure
from registrations.filters.evaluate import holds
from registrations.filters.languages import parse
from registrations.filters.normal import normal
from registrations.interest.live import StreamInterest
from registrations.interest.routes import interested_in
from registrations.interest.stored import InterestScope
from registrations.interest.throttle import AudienceThrottle
from tests.unit.registrations.filters.closure.vocabulary import closure_of


def closure(*texts: str) -> Closure:
    return closure_of(normal(parse("predicate", text).node) for text in texts)


@pytest.mark.parametrize(
    ("fields", "filter", "expected"),
    [
        ({"node": ""}, '(= @node "tester")', "maybe"),  # the hub writes who emits
        ({}, '(= @node "tester")', "maybe"),
        ({"node": "n"}, '(= @node "tester")', "no"),
        ({"node": "n"}, '(= @node "n")', "yes"),
        ({"version": ""}, '(= @version "2")', "maybe"),  # the newest of a declared type
        ({"version": ""}, "(not (exists @version))", "maybe"),
        ({"version": "02"}, '(= @version "2")', "maybe"),  # written as 2 if the type is declared
        ({"version": "2"}, '(= @version "2")', "yes"),
        ({"version": "3"}, '(= @version "2")', "no"),
        ({}, '(= @source "tester")', "maybe"),
        ({"key": "k"}, '(= @key "j")', "no"),
        ({"priority": 0}, "(> @priority 1)", "no"),
        ({"environment": {}}, "(exists env.a)", "no"),
    ],
)
def test_fields_that_the_hub_sets_are_unknown_in_a_shape(
    fields: dict[str, Any], filter: str, expected: str
) -> None:
    event = {"domain": "d", "type": "t", **fields}
    assert interest_in(closure(filter), shape_of(event)) == expected
    [read] = from_objects([event])
    stored = protobuf_codec.decode(stored_bytes(read, client="tester", mask=1))
    matched = holds(parse("predicate", filter).node, stored)
    assert expected == "maybe" or (expected == "yes") == matched


@pytest.mark.parametrize(
    ("shape", "filter", "expected"),
    [
        ({"type": "t"}, '(within a (= @type "t"))', "maybe"),
        ({"type": "t"}, '(not (within a (= @type "t")))', "maybe"),
        ({"attributes": {"a": [{"b": 1}]}}, "(within a (= b 1))", "yes"),
        ({"attributes": {"a": [{"b": 1}]}}, "(within a (= b 2))", "no"),
        ({"attributes": {"c": 1}}, "(within a (within b (exists c)))", "maybe"),
    ],
)
def test_the_existence_of_an_object_is_known_only_with_its_content(
    shape: dict[str, Any], filter: str, expected: str
) -> None:
    """The answer was `no` for events with unknown attributes."""
    assert interest_in(closure(filter), parse_shape(shape)) == expected


@pytest.mark.parametrize(
    ("shape", "field"),
    [
        ({"attributes": {"tags": ["1"] * (limits.ATTRIBUTES_VALUES_MAX + 1)}}, "shape.attributes"),
        ({"attributes": {"text": "x" * limits.ATTRIBUTES_BYTES_MAX}}, "shape.attributes"),
        ({"environment": {"text": "x" * limits.ENVIRONMENT_BYTES_MAX}}, "shape.environment"),
    ],
)
def test_a_shape_is_no_larger_than_an_event(shape: dict[str, Any], field: str) -> None:
    with pytest.raises(EventHubError) as refused:
        parse_shape(shape)
    assert (refused.value.code, refused.value.field) == ("field_too_long", field)


async def test_other_tasks_run_while_a_shape_is_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "TIME_SLICE_S", 0.0)
    interest = StreamInterest.of(closure(*(f"(= a{n} 1)" for n in range(50))), {}, quench=True)
    checking = asyncio.create_task(interested_in(interest, parse_shape({"attributes": {"b": 1}})))
    steps = 0
    while not checking.done():
        steps += 1
        await asyncio.sleep(0)
    assert (await checking, steps > 40) == ("maybe", True)


async def test_a_stream_has_one_build_for_audiences_at_a_time_and_a_pause_after_an_expensive_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "CLOSURE_WAITING_MAX", 2)
    throttle, running, done = AudienceThrottle(), 0, asyncio.Event()
    one, other, all_clients = InterestScope(1, ("a",)), InterestScope(1, ("b",)), InterestScope(1)

    async def build(scope: InterestScope) -> None:
        nonlocal running
        async with throttle.slot(scope):
            running += 1
            await done.wait()
            running -= 1

    builds = [asyncio.create_task(build(scope)) for scope in (one, other, all_clients)]
    await asyncio.sleep(0)
    assert running == 2, "one audience, and all clients"
    assert [throttle.may_start(scope, 0.0) for scope in (one, all_clients)] == [False, True]
    assert throttle.may_start(InterestScope(2, ("a",)), 0.0), "another stream"
    done.set()
    await asyncio.gather(*builds)
    throttle.built(one, took_s=0.5, many=False, now_s=100.0)
    assert throttle.may_start(other, 100.0), "it was not expensive"
    throttle.built(one, took_s=0.5, many=True, now_s=100.0)
    found = [throttle.may_start(other, now_s) for now_s in (100.0, 109.0, 110.0)]
    assert found == [False, False, True]
    assert throttle.may_start(all_clients, 100.0)
    throttle.built(
        InterestScope(2, ("a",)), took_s=limits.CLOSURE_EXPENSIVE_S, many=False, now_s=111.0
    )
    assert list(throttle._streams) == [2], "expired entries are dropped"
