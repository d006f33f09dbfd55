"""SUN-07 to SUN-16 on running forwarders: which registrations each event is delivered for, and the
look-ups and increments that it costs, on streams of several strategies.
"""

from typing import Any

import pytest

from registrations.matching.matcher import Counters
from tests.acceptance.match_indexes import build, is_used
from tests.acceptance.matched_streams import (
    MatchedStream,
    check_costs,
    deliveries,
    undisturbed,
    wait_forwarded,
)
from tests.acceptance.registrations.test_bulk import sent
from tests.integration.forward_world import eventually
from tests.live import LiveHub, LiveZone
from tests.sink import Sink

CLASS = {"domain": "cluster", "type": "resource group state"}
UNRELATED = (1_000, 10_000)  # test_counting.py has 100,000
Steps = list[tuple[str, str, Counters, Counters]]


def pairs(numbers: str) -> dict[str, str]:
    """Return the pairs of the example: nv1 and nv2 for `12`."""
    return {f"nv{number}": "abc"[int(number) - 1] for number in numbers}


def work(lookups: int, touched: int) -> Counters:
    return Counters(lookups=lookups, touched=touched)


def event(numbers: str) -> dict[str, Any]:
    return {**CLASS, "attributes": pairs(numbers)}


# the pairs of an event, the registrations that it is due for, and its work: with SUN's counters
# (an increment for each pointer in the entries of its pairs), and with `auto`
STEPS: Steps = [
    ("1", "1", work(1, 3), work(1, 2)),  # nv1 -> [ev1, ev2, ev3]
    ("2", "", work(1, 2), work(1, 1)),  # nv2 -> [ev2, ev3]; no counter is left of the last event
    ("3", "", work(1, 1), work(1, 0)),  # nv3 -> [ev3]
    ("12", "12", work(2, 5), work(2, 4)),  # the worked example, twice
    ("12", "12", work(2, 5), work(2, 4)),
    ("3", "", work(1, 1), work(1, 0)),  # ev3's counter was 2
    ("123", "123", work(3, 6), work(3, 4)),
    ("23", "", work(2, 3), work(2, 1)),
]


@pytest.mark.req("SUN-07", "SUN-08", "SUN-12", "SUN-13", "SUN-14")
@undisturbed
def test_the_entries_counters_and_results_of_figure_6(
    hub: LiveHub, zone: LiveZone, sink: Sink
) -> None:
    """The work of the single pairs shows the size of each entry, and the results of their
    combinations which registrations are in it.
    """
    counting, auto, index = streams = [
        MatchedStream(zone, strategy) for strategy in ("counting", "auto", "index")
    ]
    path = f"/{zone.name}"
    definition = {
        **CLASS,
        "streams": [stream.name for stream in streams],
        "endpoint": zone.endpoint(sink.url(path))["id"],
    }
    made = zone.register(*({**definition, "attributes": pairs("123"[:n])} for n in (3, 1, 2)))
    ids = {str(one["pair_count"]): one["id"] for one in made}
    assert [*ids] == ["3", "1", "2"]
    wait_forwarded(hub, [stream.id for stream in streams])
    epoch = build(hub, zone, index.name)
    eventually(lambda: is_used(hub, epoch), "the index is used")

    for numbers, _, by_counters, by_rarest in STEPS:
        index.emit(event(numbers))
        check_costs({counting: (event(numbers), by_counters), auto: (event(numbers), by_rarest)})
    due = {
        at: sorted(ids[number] for number in found)
        for at, (_, found, *_) in enumerate(STEPS, 1)
        if found
    }
    called = sink.wait(len(due) * len(streams), path)
    for stream in streams:
        mine = [one.json for one in called if one.json["stream"] == stream.name]
        assert {one["sequence"]: one["registrations"] for one in mine} == due
    assert deliveries(hub, streams) == len(called)


@pytest.mark.req("SUN-08")
@undisturbed
def test_a_pair_given_twice_counts_once(hub: LiveHub, zone: LiveZone, sink: Sink) -> None:
    """A pairs filter is a JSON object, of which a name that is given twice is read once; a
    predicate repeats it. Either is due with one increment, so its total is 1.
    """
    stream = MatchedStream(zone, "counting")
    path = f"/{zone.name}"
    endpoint = zone.endpoint(sink.url(path))["id"]
    repeated = '{"nv1": "a", "nv1": "a"}'
    body = f'{{"streams": ["counting"], "endpoint": {endpoint}, "attributes": {repeated}}}'
    once = hub.call("POST", "/v1/registrations", body.encode(), key=zone.admin)
    assert (once.status, once.json["pair_count"]) == (201, 1)
    twice = {"language": "predicate", "filter": "(and (= nv1 'a) (= nv1 'a))"}
    [other] = zone.register({"streams": ["counting"], "endpoint": endpoint, **twice})
    wait_forwarded(hub, [stream.id])
    check_costs({stream: (event("1"), work(1, 2))})
    [called] = sink.wait(1, path)
    assert called.json["registrations"] == [once.json["id"], other["id"]]


@pytest.mark.req("SUN-15")
def test_an_event_is_one_notification_for_each_endpoint(
    hub: LiveHub, zone: LiveZone, sink: Sink
) -> None:
    """The worked example: ev1 and ev2 of one client with one endpoint, ev1 with another endpoint of
    that client, and both of another client. The last event matches nobody else.
    """
    stream = MatchedStream(zone, "auto", "cluster")
    other = zone.key("listen:*", client="other")
    paths = [f"/{zone.name}/{name}" for name in ("one", "second", "other")]
    keys = (zone.admin, zone.admin, other)
    expected: dict[str, list[list[int]]] = {}
    for path, key, numbers in zip(
        paths, keys, (("1", "12", "123"), ("1",), ("1", "12")), strict=True
    ):
        endpoint = zone.endpoint(sink.url(path), key=key)["id"]
        definition = {"streams": [stream.name], "endpoint": endpoint}
        marked = {**definition, "type": "marker"}
        *found, marker = zone.register(
            *({**definition, **CLASS, "attributes": pairs(each)} for each in numbers),
            marked,
            key=key,
        )
        expected[path] = [[one["id"] for one in found[:2]], [marker["id"]]]
    stream.emit(event("12"))
    stream.emit({**CLASS, "type": "marker"})
    for path in paths:
        called = sorted(sink.wait(2, path), key=lambda one: one.json["sequence"])
        assert [one.json["registrations"] for one in called] == expected[path]


@pytest.mark.req("SUN-14", "SUN-16")
@pytest.mark.timeout(120)
@undisturbed
def test_the_work_does_not_grow_with_registrations_that_share_no_pair(
    hub: LiveHub, zone: LiveZone, sink: Sink
) -> None:
    """The others name the same attribute with other values. What is reset is what was touched."""
    counting, auto = streams = [MatchedStream(zone, strategy) for strategy in ("counting", "auto")]
    path = f"/{zone.name}"
    definition = {
        **CLASS,
        "streams": [stream.name for stream in streams],
        "endpoint": zone.endpoint(sink.url(path))["id"],
    }
    figure = zone.register(*({**definition, "attributes": pairs("123"[:n])} for n in (1, 2, 3)))
    wait_forwarded(hub, [stream.id for stream in streams])
    costs = {counting: (event("12"), work(2, 5)), auto: (event("12"), work(2, 2))}
    check_costs(costs)
    memory, loaded = counting.versions()["memory"], 0
    for unrelated in UNRELATED:
        lines = (
            {**definition, "op": "create", "attributes": {"nv1": n, "other": n % 50}}
            for n in range(loaded, unrelated)
        )
        assert sent(zone, lines)[-1]["created"] == unrelated - loaded
        loaded = unrelated
        check_costs(costs)
        assert counting.versions()["memory"] == memory + loaded
    called = sink.wait(6, path)
    assert {tuple(one.json["registrations"]) for one in called} == {
        (figure[0]["id"], figure[1]["id"])
    }
