"""Patterns over several events on a running hub: each case has patterns in a domain of its own, the
events that are emitted, and what the owner's listener gets for them.
"""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from eventhub.base import limits
from eventhub.event.protobuf_codec import decode
from tests.acceptance.eventhub.eventlog.test_retention import wait_for
from tests.acceptance.pattern_cases import (
    CASES,
    THREE,
    Case,
    domain,
    events_of,
    outputs_in,
    post,
    run_to_end,
    text_of,
)
from tests.live import LiveHub, LiveZone


@pytest.fixture(scope="module")
def ran(hub: LiveHub) -> Iterator[dict[int, list[Any]]]:
    """Run all cases in one group while no worker runs, and so nothing uses the broker."""
    hub.start_callbacks()
    for process in hub.workers:
        process.stop()
    zone = hub.new_zone()
    for name in ("in", "out"):
        zone.create_stream(name)
    post(zone, "/v1/pattern-groups", {"name": "g", "streams": ["in"], "output_stream": "out"})
    patterns = [
        {
            "group": "g",
            "name": domain(number),
            "language": case.language,
            "text": text_of(case, number),
        }
        for number, case in enumerate(CASES)
    ]
    post(zone, "/v1/patterns", [*patterns, _LAST])
    sequence, firsts = 0, {}
    for number, case in enumerate(CASES):
        events = events_of(case, number)
        firsts[domain(number)] = sequence
        sequence += len(events)
        assert zone.emit("in", events).status == 200
    found: dict[int, list[Any]] = {number: [] for number in range(len(CASES))}
    for event in run_to_end(zone, "out"):
        values = event["attributes"]
        name = values.get("name", event["domain"])
        if name == "last":
            continue
        number = int(name.removeprefix("case"))
        if "bindings" in values:
            found[number].append(
                {
                    variable: [one["sequence"] - firsts[name] for one in bound]
                    for variable, bound in values["bindings"].items()
                }
            )
        else:
            found[number].append((event["type"], values))
    yield found
    hub.start_callbacks()


_LAST = {"group": "g", "name": "last", "language": "ready", "text": "{last: test::last}"}


def check(ran: dict[int, list[Any]], requirement: str) -> None:
    """Compare the outputs of the requirement's cases."""
    numbers = [n for n, case in enumerate(CASES) if case.requirement == requirement]
    assert numbers
    for number in numbers:
        assert ran[number] == CASES[number].outputs, CASES[number]


@pytest.mark.req("RDY-20")
def test_both_sides_in_any_order(ran: dict[int, list[Any]]) -> None:
    check(ran, "RDY-20")


@pytest.mark.req("RDY-21")
def test_either_side(ran: dict[int, list[Any]]) -> None:
    check(ran, "RDY-21")


@pytest.mark.req("RDY-22")
def test_one_after_the_other(ran: dict[int, list[Any]]) -> None:
    check(ran, "RDY-22")


@pytest.mark.req("RDY-23")
def test_unless_the_other_came_first(ran: dict[int, list[Any]]) -> None:
    check(ran, "RDY-23")


@pytest.mark.req("RDY-24")
def test_nested_operators(ran: dict[int, list[Any]]) -> None:
    check(ran, "RDY-24")


@pytest.mark.req("RDY-26")
def test_a_sequence_at_the_top_ends_at_its_lower_bound(ran: dict[int, list[Any]]) -> None:
    check(ran, "RDY-26")


@pytest.mark.req("RDY-27")
def test_a_sequence_inside_goes_on_to_its_upper_bound(ran: dict[int, list[Any]]) -> None:
    check(ran, "RDY-27")


@pytest.mark.req("RDY-28")
def test_a_condition_over_two_events(ran: dict[int, list[Any]]) -> None:
    check(ran, "RDY-28")


@pytest.mark.req("RDY-29")
def test_a_condition_over_a_set(ran: dict[int, list[Any]]) -> None:
    check(ran, "RDY-29")


@pytest.mark.req("RDY-30")
def test_an_action_at_a_part(ran: dict[int, list[Any]]) -> None:
    check(ran, "RDY-30")


@pytest.mark.req("RDY-31")
def test_a_set_is_summarised_in_one_event(ran: dict[int, list[Any]]) -> None:
    check(ran, "RDY-31")


@pytest.mark.req("RDY-34")
def test_a_counter_while_the_broker_is_not_used(ran: dict[int, list[Any]]) -> None:
    check(ran, "RDY-34")


@pytest.mark.req("OIF-20")
def test_events_are_related_by_tests(ran: dict[int, list[Any]]) -> None:
    check(ran, "OIF-20")


@pytest.mark.req("OIF-21")
def test_three_events_in_the_order_of_a_field(ran: dict[int, list[Any]]) -> None:
    check(ran, "OIF-21")


@pytest.mark.req("OIF-23")
def test_an_agent_counts_recent_events(ran: dict[int, list[Any]]) -> None:
    check(ran, "OIF-23")


@pytest.fixture
def made(hub: LiveHub, zone: LiveZone) -> LiveZone:
    """Return a zone with a group over `in` whose outputs go to `out`."""
    hub.start_callbacks()
    for name in ("in", "out"):
        zone.create_stream(name)
    post(zone, "/v1/pattern-groups", {"name": "g", "streams": ["in"], "output_stream": "out"})
    post(zone, "/v1/patterns", _LAST)
    return zone


def pattern(zone: LiveZone, text: str, language: str = "ready", **more: Any) -> Any:
    body = {"group": "g", "name": f"p{len(text)}", "language": language, "text": text, **more}
    return post(zone, "/v1/patterns", body)


@pytest.mark.req("RDY-25")
def test_the_bounds_of_a_sequence_are_checked(made: LiveZone) -> None:
    def refused(text: str) -> str:
        body = {"group": "g", "name": "x", "language": "ready", "text": text}
        answer = made.hub.call("POST", "/v1/patterns", body, key=made.admin)
        assert answer.status in (400, 422), answer
        return str(answer.json["detail"])

    assert refused("{v[3..2]: A}; {b: B}")
    assert refused("{v[0..2]: A}")
    assert pattern(made, "{a: A}; {v[0..*]: B}; {c: C}")["status"] == "running"


@pytest.mark.req("RDY-33")
def test_an_announced_event_matches_others_and_names_its_cause(made: LiveZone) -> None:
    announcing = pattern(made, "{a: t::A} do announce(t::Ann, {n = a.n}) into 'in'")
    pattern(made, "{b: t::Ann | $n == 7}")
    made.emit("in", {"domain": "t", "type": "A", "attributes": {"n": 7}})
    segment = made.hub.call("GET", "/v1/streams/in", key=made.admin).json["segment"]["uuid"]
    wait_for(lambda: len(outputs_in(made, "out")) == 1, "the match of the announced event")
    [_, announced] = outputs_in(made, "in")
    assert (announced["type"], announced["source"]) == ("Ann", "tester")
    assert announced["cause"] == f"{segment}:1"
    environment = announced["environment"]
    assert environment["eventhub.pattern"] == str(announcing["id"])
    assert environment["eventhub.causes"] == announced["cause"]
    [match] = outputs_in(made, "out")
    assert match["attributes"]["bindings"]["b"][0]["sequence"] == 2


@pytest.mark.req("RDY-33")
def test_a_pattern_that_triggers_itself_stops(made: LiveZone) -> None:
    pattern(made, "{a: loop::A} do announce(loop::A, {n = a.n}) into 'in'")
    made.emit("in", {"domain": "loop", "type": "A", "attributes": {"n": 1}})
    wait_for(lambda: _dropped(made) == {"hop_limit": 1}, "the limit")
    chain = [one for one in outputs_in(made, "in") if one["domain"] == "loop"]
    left = [one.get("environment", {}).get("eventhub.hop_limit") for one in chain]
    assert left == [None, "7", "6", "5", "4", "3", "2", "1"]


def _dropped(zone: LiveZone) -> Any:
    items = zone.hub.call("GET", "/v1/patterns?group=g&limit=100", key=zone.admin).json["items"]
    return next((one["dropped"] for one in items if one["dropped"]), None)


@pytest.mark.req("RDY-43")
def test_a_tick_is_bound_by_a_pattern(made: LiveZone) -> None:
    pattern(made, "{a: t::A}; {t: Time::Tick | $handle == 'h'}")
    made.emit("in", {"domain": "t", "type": "A"})
    timer = post(made, "/v1/timers", {"stream": "in", "handle": "h", "after_s": 0})
    wait_for(lambda: len(outputs_in(made, "out")) == 1, "the match")
    [match] = outputs_in(made, "out")
    assert [one["sequence"] for one in match["attributes"]["bindings"]["t"]] == [2]
    [_, tick] = outputs_in(made, "in")
    assert tick["attributes"]["timer"] == timer["id"]
    assert made.hub.call("GET", "/v1/timers", key=made.admin).json["items"] == []


@pytest.mark.req("RDY-45")
def test_the_right_side_loses_nothing_when_it_is_evaluated_late(
    hub: LiveHub, made: LiveZone
) -> None:
    """No forwarder runs from before the left side matches until after the right side came."""
    pattern(made, "{a: t::A}; {b: t::B}")
    run_to_end(made, "out")
    for process in hub.forwarders:
        process.stop()
    for type in ("B", "A", "B"):
        made.emit("in", {"domain": "t", "type": type})
    hub.start_callbacks()
    wait_for(lambda: len(outputs_in(made, "out")) == 2, "the match")
    bindings = outputs_in(made, "out")[1]["attributes"]["bindings"]
    assert [bindings[name][0]["sequence"] for name in "ab"] == [3, 4]


def metric(zone: LiveZone, name: str) -> float:
    lines = zone.hub.call("GET", "/metrics").body.decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.split("{")[0].split()[0] == name)


def settled(zone: LiveZone, name: str) -> float:
    """Return a gauge once it has not changed for longer than forwarders take to report it."""
    value, since_s = metric(zone, name), time.monotonic()

    def holds() -> bool:
        nonlocal value, since_s
        now = metric(zone, name)
        if now != value:
            value, since_s = now, time.monotonic()
        return time.monotonic() - since_s > limits.FORWARD_IDLE_INTERVAL_S + 1

    wait_for(holds, f"{name} to settle")
    return value


@pytest.mark.req("RDY-46")
def test_suspending_a_pattern_unregisters_its_leaves(made: LiveZone) -> None:
    created = pattern(made, "({a: w::A | $x > 1} && {b: w::B | $x > 2}); {c: w::C | $x > 3}")
    run_to_end(made, "out")
    before = settled(made, "eventhub_pattern_filters")
    path = f"/v1/patterns/{created['id']}"
    changed = made.hub.call("PATCH", path, {"suspended": True}, key=made.admin)
    assert (changed.status, changed.json["status"]) == (200, "suspended")
    wait_for(lambda: metric(made, "eventhub_pattern_filters") == before - 3, "three leaves less")
    events = [{"domain": "w", "type": type, "attributes": {"x": 9}} for type in "ABC"]
    made.emit("in", events)
    made.hub.call("PATCH", path, {"suspended": False}, key=made.admin)
    wait_for(lambda: metric(made, "eventhub_pattern_filters") == before, "three leaves again")
    made.emit("in", events)
    wait_for(lambda: len(outputs_in(made, "out")) == 2, "the match after it was resumed")
    bindings = outputs_in(made, "out")[1]["attributes"]["bindings"]
    assert [bindings[name][0]["sequence"] for name in "abc"] == [5, 6, 7]


@pytest.mark.req("RDY-47")
def test_equal_leaves_of_a_hundred_patterns_are_evaluated_once(made: LiveZone) -> None:
    run_to_end(made, "out")
    before = settled(made, "eventhub_pattern_filters")
    texts = [
        {
            "group": "g",
            "name": f"s{number}",
            "language": "ready",
            "text": f"{{a: s::A | $x > 5}}; {{b: s::B | $x > 5}} last {number + 2}",
        }
        for number in range(100)
    ]
    evaluations = []
    for new, matches in ((texts[:1], 1), (texts[1:], 101)):
        post(made, "/v1/patterns", new)
        wait_for(lambda: metric(made, "eventhub_pattern_filters") == before + 2, "two filters")
        evaluated = metric(made, "eventhub_pattern_evaluations_total")
        made.emit("in", [{"domain": "s", "type": type, "attributes": {"x": 9}} for type in "AB"])
        wait_for(lambda: len(outputs_in(made, "out")) == 1 + matches, "the matches")  # noqa: B023
        evaluations.append(metric(made, "eventhub_pattern_evaluations_total") - evaluated)
    assert evaluations[0] == evaluations[1] > 0


@pytest.mark.req("OIF-22")
def test_a_late_pattern_recognises_what_its_memory_holds(made: LiveZone) -> None:
    events = "E(time=1,userid=u) E(time=2,userid=v) E(time=3,userid=u) E(time=4,userid=u)"
    short = Case("", f"{THREE} (memory 3)", events, [], "temporal")
    long = short._replace(text=f"{THREE} (memory 10)")
    pattern(made, text_of(short, 1), "temporal")
    made.emit("in", events_of(short, 1))
    assert [one["attributes"]["name"] for one in run_to_end(made, "out")] == ["last"]
    late = pattern(made, text_of(long, 1), "temporal", recent=True)
    wait_for(lambda: len(outputs_in(made, "out")) == 2, "the match of earlier events")
    match = outputs_in(made, "out")[1]["attributes"]
    assert match["pattern"] == late["id"]
    assert [match["bindings"][f"${n}"][0]["sequence"] for n in (1, 2, 3)] == [1, 3, 4]


@pytest.mark.req("OIF-23")
def test_an_agent_cannot_reach_the_host_or_run_for_ever(made: LiveZone) -> None:
    body = {"group": "g", "name": "host", "language": "agent", "text": '(open "/etc/passwd")'}
    refused = made.hub.call("POST", "/v1/patterns", body, key=made.admin)
    assert refused.json["code"] == "program_syntax"
    endless = pattern(made, "(on (= @domain 'e)) (define (f) (f)) (f)", "agent")
    made.emit("in", {"domain": "e", "type": "A"})
    run_to_end(made, "out")
    found = made.hub.call("GET", f"/v1/patterns/{endless['id']}", key=made.admin).json
    assert found["status"] == "suspended"
    assert found["fault"]["code"] in ("steps_max", "call_depth_max")


@pytest.mark.req("OIF-29")
def test_temporal_matches_are_those_of_an_enumeration(made: LiveZone) -> None:
    values = [(n * 7) % 5 for n in range(40)]
    text = (
        "(event (x ?x) (n ?n1) (where (= @domain 'r)))"
        " (event (x ?x) (n ?n2) (where (= @domain 'r))) (test (< ?n1 ?n2)) (memory 12)"
    )
    pattern(made, text, "temporal")
    made.emit(
        "in",
        [
            {"domain": "r", "type": "E", "attributes": {"x": x, "n": n}}
            for n, x in enumerate(values, 1)
        ],
    )
    found = [
        tuple(one["attributes"]["bindings"][name][0]["sequence"] for name in ("$1", "$2"))
        for one in run_to_end(made, "out")
        if one["attributes"]["name"] != "last"
    ]
    expected = [
        (first, second)
        for second in range(1, 41)
        for first in range(max(second - 11, 1), second)
        if values[first - 1] == values[second - 1]
    ]
    assert found == sorted(expected, key=lambda pair: (pair[1], pair[0]))
    assert len(found) > 40


def test_a_match_is_hidden_from_other_clients(made: LiveZone) -> None:
    pattern(made, "{a: t::A}")
    made.emit("in", {"domain": "t", "type": "A"})
    wait_for(lambda: len(outputs_in(made, "out")) == 1, "the match")
    other = made.key("listen:*", client="other")
    page = made.hub.call("GET", "/v1/streams/out/events?from=oldest", key=other)
    assert page.json["events"] == []


@pytest.mark.req("RDY-32")
def test_a_notification_goes_to_its_owner_or_to_the_session_that_it_names(
    hub: LiveHub, made: LiveZone
) -> None:
    post(made, "/v1/sessions", {"kind": "consumer", "name": "night"})
    pattern(made, "{a: t::A | $n == 1} do notify(a)")
    pattern(made, "{b: t::A | $n == 2} do notify(b) to 'night'")
    for number in (1, 2):
        made.emit("in", {"domain": "t", "type": "A", "attributes": {"n": number}})
    owners = run_to_end(made, "out")
    assert [sorted(one["attributes"]["bindings"]) for one in owners] == [["a"], ["last"]]
    rows = hub.sql(
        "SELECT e.payload FROM zones z JOIN streams s ON s.zone_id = z.id AND s.name = 'out'"
        " JOIN segments g ON g.stream_id = s.id JOIN events e ON e.segment_id = g.id"
        " WHERE z.name = %s ORDER BY e.sequence",
        made.name,
    )
    stored = [decode(payload).destinations for (payload,) in rows]
    assert stored == [("tester",), ("tester/night",), ("tester",)]
