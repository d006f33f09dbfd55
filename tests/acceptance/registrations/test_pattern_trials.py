"""Checks and dry runs of patterns through the API: what an editor and a test bench show."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import orjson
import pytest

from eventhub.base import limits
from tests.live import LiveHub, LiveZone


def ask(zone: LiveZone, path: str, text: str, language: str = "ready", **more: Any) -> Any:
    body = {"language": language, "text": text, **more}
    answer = zone.hub.call("POST", f"/v1/patterns/{path}", body, key=zone.admin)
    assert answer.status == 200, answer
    return answer.json


def events(*types: str, **attributes: Any) -> list[dict[str, Any]]:
    return [{"domain": "d", "type": type, "attributes": attributes} for type in types]


def matched(steps: list[dict[str, Any]]) -> list[int]:
    """Return the numbers of the events with which the pattern matched."""
    return [
        step["event"]["order"]
        for step in steps
        if any(one["output"] == "match" for one in step["outputs"])
    ]


def texts(tree: dict[str, Any]) -> Any:
    return [tree["text"], *map(texts, tree["parts"])]


@pytest.mark.req("RDY-46")
def test_a_check_shows_the_tree_of_a_pattern(zone: LiveZone) -> None:
    found = ask(zone, "check", "({a: A} && {b: B | $x > 1}); {C}")
    assert found["mistake"] is None
    root, left, right = texts(found["tree"])
    assert root.startswith("{a: A}")
    assert [left[0], *(each[0] for each in left[1:])][1:] == ["{a: A}", "{b: B | $x > 1}"]
    assert right == ["{C}"]
    assert [one["variable"] for one in found["elements"]] == ["a", "b", "$3"]
    assert found["window"] == {"within_s": 86_400.0, "last": 100}
    assert found["warnings"] == ["default_window"]


def test_a_check_names_the_place_of_a_mistake(zone: LiveZone) -> None:
    for language, text, code, column in (
        ("ready", "{a: A", "filter_syntax", 1),
        ("ready", "{v[3..2]: A}", "filter_syntax", 2),
        ("temporal", "(event (time ?t))(test (< ?t ?u))", "temporal_syntax", 30),
        ("agent", "(notify event)", "program_syntax", 9),
    ):
        mistake = ask(zone, "check", text, language)["mistake"]
        assert (mistake["code"], mistake["column"]) == (code, column), text
        assert mistake["position"] == {"field": "text"}
    refused = ask(zone, "check", "(notify (event))", "agent", once=True)["mistake"]
    assert refused["position"] == {"field": "once"}


def test_a_check_says_what_a_pattern_names_and_costs(zone: LiveZone) -> None:
    text = "{a: A | $x != 1} do announce(X, {}) into 'out', notify(a) to 'desk'"
    found = ask(zone, "check", text)
    assert (found["streams"], found["sessions"]) == (["out"], ["desk"])
    assert found["warnings"] == ["every_event"]
    assert found["cost"] == {"filters": 1, "every_event_cost": 1}


@pytest.mark.parametrize(
    ("text", "types", "expected"),
    [
        pytest.param("{a: A} && {b: B}", "BA", [2], marks=pytest.mark.req("RDY-20")),
        pytest.param("{a: A} || {b: B}", "B", [1], marks=pytest.mark.req("RDY-21")),
        pytest.param("{a: A}; {b: B}", "BAB", [3], marks=pytest.mark.req("RDY-22")),
        pytest.param("{a: A} butnot {b: B}", "BA", [], marks=pytest.mark.req("RDY-23")),
        pytest.param(
            "({a: A} && {b: B}); ({c: C} butnot {d: D})",
            "DABC",
            [4],
            marks=pytest.mark.req("RDY-24"),
        ),
        pytest.param(
            "({a: A} && {b: B}); ({c: C} butnot {d: D})",
            "ABDC",
            [],
            marks=pytest.mark.req("RDY-24"),
        ),
        pytest.param("{v[2..4]: A}", "AAA", [2], marks=pytest.mark.req("RDY-26")),
        pytest.param("{v[2..4]: A} && {b: B}", "AAAB", [4], marks=pytest.mark.req("RDY-27")),
    ],
)
def test_a_dry_run_shows_each_step(
    zone: LiveZone, text: str, types: str, expected: list[int]
) -> None:
    found = ask(zone, "dry-run", text, events=events(*types))
    assert matched(found["steps"]) == expected
    assert (found["matches"], found["is_complete"]) == (len(expected), True)
    assert [step["event"]["type"] for step in found["steps"]] == [*types]


def test_a_step_has_what_is_bound_and_what_is_waited_for(zone: LiveZone) -> None:
    start = {"time": "2026-11-27T12:00:00Z"}
    given = [{**one, **start} for one in events("A")] + events("B")
    [first, second] = ask(zone, "dry-run", "{a: A}; {b: B} within 1h", events=given)["steps"]
    left, right = first["tree"]["children"]
    assert (left["element"], left["status"]) == ("{a: A}", "matched")
    assert left["bound"]["a"][0]["order"] == 1
    assert left["expires_at"].startswith("2026-11-27T13:00:00")
    assert (right["status"], right["since"]["order"]) == ("waiting", 1)
    assert second["event"]["appended_at"].startswith("2026-11-27T12:00:01")
    [match, *_] = second["outputs"]
    assert [one["order"] for one in match["bindings"]["b"]] == [2]


def test_a_dry_run_has_all_outputs_of_a_pattern(zone: LiveZone) -> None:
    text = "{v[2..2]: A} do announce(Ops::Two, {n = count(v)}) into 'out' per $u once"
    given = [*events("A", u=1), *events("A", u=2), *events("A", u=1)]
    steps = ask(zone, "dry-run", text, events=given)["steps"]
    assert [step["key"] for step in steps] == [1, 2, 1]
    found = {one["output"]: one for one in steps[2]["outputs"]}
    assert set(found) == {"match", "announce", "ended"}
    assert found["announce"]["event"] == {"domain": "Ops", "type": "Two", "attributes": {"n": 2}}
    assert found["announce"]["stream"] == "out"


def test_a_dry_run_over_a_stream_reads_what_the_caller_may_see(
    hub: LiveHub, zone: LiveZone
) -> None:
    zone.create_stream("orders")
    zone.emit("orders", events("A"))
    zone.emit("orders", [{**events("B")[0], "destinations": ["somebody"]}])
    zone.emit("orders", events("A", "B"))
    found = ask(zone, "dry-run", "{a: A}; {b: B}", stream="orders")
    assert [step["event"]["sequence"] for step in found["steps"]] == [1, 3, 4]
    assert found["steps"][2]["event"]["stream"] == "orders"
    assert matched(found["steps"]) == [3]
    later = ask(zone, "dry-run", "{a: A}; {b: B}", stream="orders", after=2, count=1)
    assert [step["event"]["sequence"] for step in later["steps"]] == [3]
    other = zone.key("listen:other")
    body = {"language": "ready", "text": "{A}", "stream": "orders"}
    hub.call("POST", "/v1/patterns/dry-run", body, key=other).refused(403, "forbidden")
    unknown = hub.call("POST", "/v1/patterns/dry-run", {**body, "stream": "x"}, key=zone.admin)
    assert unknown.refused(404, "unknown_stream")["position"] == {"field": "stream"}


@pytest.mark.req("OIF-21")
def test_three_events_in_the_order_of_their_times(zone: LiveZone) -> None:
    text = (
        "(event (t ?t1) (u ?u1)) (event (t ?t2) (u ?u2)) (event (t ?t3) (u ?u3))"
        " (test (< ?t1 ?t2 ?t3)) (test (eq ?u1 ?u2 ?u3))"
    )
    given = [*events("A", t=1, u="u"), *events("A", t=2, u="v"), *events("A", t=3, u="u")]
    given += events("A", t=4, u="u")
    steps = ask(zone, "dry-run", text, "temporal", events=given)["steps"]
    assert matched(steps) == [4]
    small = ask(zone, "dry-run", f"(memory 3) {text}", "temporal", events=given)["steps"]
    assert matched(small) == []


@pytest.mark.req("OIF-23")
def test_an_agent_that_never_ends_is_stopped(zone: LiveZone) -> None:
    text = "(define (again) (again)) (again)"
    [step] = ask(zone, "dry-run", text, "agent", events=events("A"))["steps"]
    [output] = step["outputs"]
    assert output["output"] == "suspended"
    assert output["fault"]["code"] in ("steps_max", "call_depth_max")


LONG = "{v[500..*]: A} && {b: B} last 10000"


def test_a_dry_run_is_bounded_in_bytes(zone: LiveZone) -> None:
    """Each step repeated everything that was bound: 1,000 small events were an answer of 50 MB."""
    found = ask(zone, "dry-run", LONG, events=events("A") * 1_000)
    steps = found["steps"]
    assert (len(orjson.dumps(steps)) < 5_000_000, found["is_complete"]) == (True, False)
    longest = steps[-1]["tree"]["bound"]["v"]
    assert [one["order"] for one in longest] == [*range(1, limits.PATTERN_BOUND_SHOWN_MAX + 1)]


def test_a_dry_run_of_a_time_beyond_all_windows_is_refused(zone: LiveZone) -> None:
    """It was an internal error: what is bound expires after the year 9999."""
    given = [{**events("A")[0], "time": "9999-12-31T23:00:00Z"}]
    body = {"language": "ready", "text": "{a: A}; {b: B}", "events": given}
    answer = zone.hub.call("POST", "/v1/patterns/dry-run", body, key=zone.admin)
    assert answer.refused(400, "invalid_field")["position"] == {"field": "events.0.time"}


def test_many_dry_runs_leave_the_database_to_others(hub: LiveHub, zone: LiveZone) -> None:
    """Each kept a connection while it ran: some at once made the management API unavailable."""
    body = {"language": "ready", "text": LONG, "events": events("A") * 1_000}
    with ThreadPoolExecutor(12) as pool:
        running = [
            pool.submit(hub.call, "POST", "/v1/patterns/dry-run", body, key=zone.admin)
            for _ in range(12)
        ]
        answers = [one.result() for one in running]
    refused = [one for one in answers if one.status != 200]
    assert len(refused) < len(answers)
    for one in refused:
        one.refused(503, "unavailable")


# nearly as many steps as a run may take
BUSY = "(define n 0) (while (< n 1000) (set! n (+ n 1)))"


def test_a_client_runs_one_pattern_at_a_time_and_refuses_no_other(zone: LiveZone) -> None:
    """The long dry runs of one client refused those of all others, and the event loop of the web
    process waited for their thread: emits took ten times as long.
    """
    path, call, other = "/v1/patterns/dry-run", zone.hub.call, zone.key("emit:*", client="other")
    long = {"language": "agent", "text": BUSY, "events": events("A") * 100}
    short = {"language": "ready", "text": "{a: A}", "events": events("A")}
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(call, "POST", path, long, key=zone.admin)
        while (answer := call("POST", path, short, key=zone.admin)).status == 200:
            assert not running.done()
        answer.refused(503, "unavailable")
        assert call("POST", path, short, key=other).status == 200
        assert not running.done()
    assert running.result().json["is_complete"]
