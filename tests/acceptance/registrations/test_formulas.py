"""The tables of formulas of the filter languages, through the public routes: all are registered by
one bulk request, each table's events are emitted once, and callbacks name those that hold.
"""

from typing import Any

import pytest

from tests.acceptance.match_indexes import build, is_used
from tests.acceptance.registrations.test_bulk import sent
from tests.acceptance.wire import session, until
from tests.live import LiveHub, LiveZone
from tests.sink import Sink
from tests.unit.registrations.filters.formulas import SIMPLE_FORMS, TABLES

STRATEGIES = ("auto", "compile", "index")


@pytest.mark.req("RDY-14")
@pytest.mark.req("RDY-16")
@pytest.mark.req("RDY-18")
@pytest.mark.req("RDY-19")
@pytest.mark.req("RDY-44")
@pytest.mark.req("OIF-14")
@pytest.mark.req("OIF-17")
@pytest.mark.req("OIF-18")
@pytest.mark.req("OIF-19")
async def test_exactly_the_formulas_that_hold_are_notified(
    hub: LiveHub, zone: LiveZone, sink: Sink
) -> None:
    """By callback under several strategies, of which one uses a built index, and by a websocket."""
    path = f"/{zone.name}"
    endpoint = zone.endpoint(sink.url(path))["id"]
    for strategy in STRATEGIES:
        zone.create_stream(strategy, matching=strategy)
    common = {"op": "create", "streams": STRATEGIES, "endpoint": endpoint}
    formulas = [
        (f"{table.row}:{number}", table.language, text, holding)
        for table in TABLES
        for number, (text, holding) in enumerate(table.formulas.items())
    ]
    lines = [
        {**common, "key": key, "language": language, "filter": text}
        for key, language, text, _ in formulas
    ]
    lines.append({**common, "key": "all", "language": "predicate", "filter": "true"})
    *_, last = sent(zone, lines)
    assert (last["created"], last["refused"]) == (len(lines), 0)
    listed = zone.hub.call("GET", "/v1/registrations?limit=1000", key=zone.admin).json["items"]
    keys = {one["id"]: one["key"] for one in listed}
    built = build(hub, zone, "index")
    await until(lambda: is_used(hub, built))
    events = [event for table in TABLES for event in table.events]
    for strategy in STRATEGIES:
        assert zone.emit(strategy, events).status == 200
    called = [one.json for one in sink.wait(len(STRATEGIES) * len(events), path)]
    by_event = {(one["stream"], one["sequence"]): one["registrations"] for one in called}
    assert len(by_event) == len(called)
    async with session(hub, zone.admin) as reader:
        await reader.listen("auto", registrations=[*keys], start="oldest")
        received = await reader.events(len(events))
    by_event |= {("websocket", one["sequence"]): one["registrations"] for one in received}
    sequence = 0
    for table in TABLES:
        expected: dict[int, set[str]] = {n: set() for n in range(len(table.events))}
        for key, _, _, holding in formulas:
            for n in holding if key.startswith(f"{table.row}:") else ():
                expected[n].add(key)
        for n in expected:
            sequence += 1
            for way in (*STRATEGIES, "websocket"):
                found = {keys[id] for id in by_event[way, sequence]}
                assert "all" in found
                own = {key for key in found if key.startswith(f"{table.row}:")}
                assert own == expected[n], (way, table.row, table.events[n])


@pytest.mark.req("RDY-18")
@pytest.mark.req("RDY-19")
@pytest.mark.req("OIF-14")
@pytest.mark.req("OIF-17")
@pytest.mark.req("OIF-18")
@pytest.mark.req("OIF-19")
def test_each_formula_is_explained_with_its_truth(zone: LiveZone) -> None:
    for table in TABLES:
        for text, holding in table.formulas.items():
            for n, event in enumerate(table.events):
                body = {"language": table.language, "filter": text, "event": event}
                answer = zone.hub.call("POST", "/v1/filters/explain", body, key=zone.admin)
                assert answer.json["held"] is (n in holding), (table.row, text, event)


@pytest.mark.req("RDY-16")
def test_the_simple_form_is_accepted_printed_back_and_its_errors_are_located(
    zone: LiveZone,
) -> None:
    zone.create_stream("alarms")

    def ready(text: str) -> dict[str, Any]:
        return {"streams": ["alarms"], "language": "ready", "filter": text}

    created = zone.register(*map(ready, SIMPLE_FORMS))
    for text, one in zip(SIMPLE_FORMS, created, strict=True):
        shown = zone.hub.call("GET", f"/v1/registrations/{one['id']}", key=zone.admin).json
        assert shown["filter"] == text
        assert shown["predicate"] == '(and (type "*::MyAlarm") (> Priority 5))'
        checked = zone.hub.call("POST", "/v1/filters/check", ready(text), key=zone.admin).json
        assert (checked["variable"], checked["ready"]) == ("Ev1", SIMPLE_FORMS[0])
    for text, line, column in (
        ("Ev1: MyAlarm | $Priority >", 1, 27),
        ("{Ev1: MyAlarm\n | $Priority > 5", 1, 1),
        ("Ev1: MyAlarm\n | $Priority\n  = 5", 3, 3),
        ("MyAlarm $Priority > 5", 1, 9),
    ):
        answer = zone.hub.call("POST", "/v1/registrations", ready(text), key=zone.admin)
        problem = answer.refused(400, "filter_syntax")
        assert problem["position"] == {"field": "filter"}
        assert (problem["line"], problem["column"]) == (line, column), text
