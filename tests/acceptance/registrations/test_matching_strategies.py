"""OIF's strategies on streams of their own (OIF-24 to OIF-28, OIF-30): the work that forwarders do
for the events of each row, and equal results for one workload.
"""

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from registrations.matching.matcher import Counters
from tests.acceptance.matched_streams import (
    Costs,
    MatchedStream,
    check_costs,
    deliveries,
    undisturbed,
    wait_forwarded,
)
from tests.live import LiveHub, LiveZone
from tests.sink import Sink

STRATEGIES = ("scan", "sig", "memo", "lattice", "compile")
JOE = "(and (or (= type 'error) (= type 'warning)) (= user 'Joe))"  # two alternatives
LIKE_JOE = [f"(and (in type 'error 'warning) (prefix user 'Joe{n:02}))" for n in range(99)]
LATTICE = ["(= a 1)", "(and (= a 1) (= b 1))", "(and (= a 1) (= b 1) (= c 1))"]
SHARED = [f"(and (> x 7) (= n {n}))" for n in range(50)]
# the filters of each stream
FILTERS = {
    "sig": [JOE, *LIKE_JOE, "(or (= a 1) (= b 2))"],
    "memo": [f"(and (= a {n}) (> b 1))" for n in range(50)],
    "lattice": LATTICE,
    "compile": ["(> x 3)", "(> x 7)"],  # the oldest; SHARED follow
}
SIGNED = 2 + 99 + 2  # the signatures of `sig`
Step = tuple[dict[str, Any], Counters, list[int]]
# the events of each stream, the work that each costs, and its filters that match
STEPS: dict[str, list[Step]] = {
    "sig": [
        ({"x": 1}, Counters(compared=SIGNED), []),
        ({"type": "error"}, Counters(compared=SIGNED), []),  # S(Joe) is {type, user}: one is too
        ({"user": "Joe"}, Counters(compared=SIGNED), []),  # few, and both are enough
        (
            {"type": "error", "user": "Joe"},
            Counters(compared=SIGNED, touched=101, evaluated=2 * 99),
            [0],
        ),
        ({"a": 1}, Counters(compared=SIGNED, touched=1), [100]),
    ],
    "memo": [
        ({"a": 1, "b": 9}, Counters(compared=50, touched=50, evaluated=1, rebuilds=1), [1]),
        ({"a": 2, "b": 9, "unknown": 1}, Counters(touched=50, evaluated=1), [2]),
    ],
    "lattice": [
        ({"q": 1}, Counters(compared=1, rebuilds=1), []),
        ({"a": 1}, Counters(compared=2, touched=1), [0]),
        ({"a": 1, "b": 1, "c": 1}, Counters(compared=3, touched=3), [0, 1, 2]),
    ],
    "compile": [
        ({"x": 2}, Counters(touched=1, evaluated=1, shadowed=1), []),
        # `(= n 4)` is in the then-part of `(> x 7)`, so it is looked up only if that holds
        ({"x": 2, "n": 4}, Counters(touched=1, evaluated=1, shadowed=1), []),
        ({"x": 8, "n": 4}, Counters(touched=4, evaluated=2, lookups=1), [0, 1, 6]),
    ],
}
Holds = Callable[[int | None, int | None, str], bool]
WORKLOAD: list[tuple[str, Holds]] = [
    row
    for k in range(5)
    for row in (
        (f"(> n {k})", lambda n, m, t, k=k: n is not None and n > k),
        (f"(or (= n {k}) (= m {k}))", lambda n, m, t, k=k: k in (n, m)),
        (f"(and (= n {k}) (not (exists m)))", lambda n, m, t, k=k: n == k and m is None),
        (f"(and (not (= n {k})) (= m 1))", lambda n, m, t, k=k: n != k and m == 1),
        (
            f"(and (<= n {k}) (prefix t 'a))",
            lambda n, m, t, k=k: n is not None and n <= k and t == "ab",
        ),
    )
]
EVENTS = [*product((None, 0, 1, 2, 3, 4), (None, 1, 3), ("ab", "b"))]


def event(attributes: dict[str, Any]) -> dict[str, Any]:
    return {"domain": "shop", "type": "order", "attributes": attributes}


def predicates(*texts: str, **definition: Any) -> list[dict[str, Any]]:
    return [{**definition, "language": "predicate", "filter": text} for text in texts]


@pytest.mark.req("OIF-24", "OIF-25", "OIF-26", "OIF-27", "OIF-28", "OIF-30")
@undisturbed
def test_each_strategy_does_its_work_and_all_find_the_same(
    hub: LiveHub, zone: LiveZone, sink: Sink
) -> None:
    streams = {strategy: MatchedStream(zone, strategy) for strategy in STRATEGIES}
    path = f"/{zone.name}"
    endpoint = zone.endpoint(sink.url(path))["id"]
    ids = {
        name: [
            one["id"]
            for one in zone.register(*predicates(*texts, streams=[name], endpoint=endpoint))
        ]
        for name, texts in FILTERS.items()
    }
    zone.register(*predicates("(= none 1)", streams=["scan"], endpoint=endpoint))
    wait_forwarded(hub, [stream.id for stream in streams.values()])

    expected: dict[tuple[str, int], list[int]] = {}
    for at in range(max(map(len, STEPS.values()))):
        costs: Costs = {
            streams[name]: (event(steps[at][0]), steps[at][1])
            for name, steps in STEPS.items()
            if at < len(steps)
        }
        check_costs(costs)
        if not at:
            shared = predicates(*SHARED, streams=["compile"], endpoint=endpoint)
            ids["compile"] += [one["id"] for one in zone.register(*shared)]
        for name, steps in STEPS.items():
            if at < len(steps) and steps[at][2]:
                expected[name, at + 1] = [ids[name][number] for number in steps[at][2]]
    # OIF-26: the next event with the same fields finds an added subscription
    memo = streams["memo"]
    [added] = zone.register(*predicates("(= b 9)", streams=["memo"], endpoint=endpoint))
    cost = Counters(compared=51, touched=51, evaluated=1, rebuilds=1)
    check_costs({memo: (event({"a": 3, "b": 9}), cost)})
    expected["memo", 3] = [ids["memo"][3], added["id"]]

    expected |= emitted_workload(zone, [*streams.values()], endpoint)
    called = [one.json for one in sink.wait(len(expected), path)]
    found = {(one["stream"], one["sequence"]): one["registrations"] for one in called}
    assert found == expected
    assert deliveries(hub, [*streams.values()]) == len(called) == len(found)


def emitted_workload(
    zone: LiveZone, streams: list[MatchedStream], endpoint: int
) -> dict[tuple[str, int], list[int]]:
    """Register the workload on all streams and emit its events; return the registrations that each
    event is due for, by the functions of the workload.
    """
    names = [stream.name for stream in streams]
    texts = [text for text, _ in WORKLOAD]
    made = zone.register(*predicates(*texts, streams=names, endpoint=endpoint))
    expected: dict[tuple[str, int], list[int]] = {}
    for stream in streams:
        found = zone.hub.call("GET", f"/v1/streams/{stream.name}", key=zone.admin).json
        assert found["matching"] == stream.strategy
        for sequence, (n, m, t) in enumerate(EVENTS, (found["last"] or 0) + 1):
            due = [
                one["id"] for one, (_, holds) in zip(made, WORKLOAD, strict=True) if holds(n, m, t)
            ]
            if due:
                expected[stream.name, sequence] = due
        given = ({"n": n, "m": m, "t": t} for n, m, t in EVENTS)
        stream.emit([event({k: v for k, v in each.items() if v is not None}) for each in given])
    return expected
