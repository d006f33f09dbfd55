"""The answers of the hot routes equal the OpenAPI document: status, type, and each field."""

from typing import Any

from tests.acceptance.documented import undocumented
from tests.acceptance.wire import EVENT
from tests.live import Answer, LiveZone

FULL: dict[str, Any] = {
    **EVENT,
    "name": "n",
    "version": "1",
    "body": {"a": [1]},
    "content_type": "application/json",
    "node": "n1",
    "application": ["billing"],
    "environment": {"region": "eu"},
    "priority": 3,
    "expires_at": "2099-01-01T00:00:00Z",
    "time": "2026-01-01T00:00:00Z",
    "key": "k",
    "bundle": "b",
    "bundle_number": 1,
    "depends": ["d"],
    "correlation": "c",
    "cause": "c",
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "destinations": ["admin"],
    "audience": ["staff"],
    "security_level": "high",
    "summary": "s",
    "time_constraint_ms": 5,
    "merge_scheme": "m",
    "order": "none",
}


def check(zone: LiveZone, line: str, body: Any = None, *, key: str | None = None) -> Answer:
    """Ask, and require that the answer is as documented."""
    method, path = line.split(" ", 1)
    answer = zone.hub.call(method, path, body, key=zone.admin if key is None else key)
    assert undocumented(line, answer) == []
    return answer


def test_answers_about_events_are_as_documented(zone: LiveZone) -> None:
    zone.create_stream("orders")
    events = "/v1/streams/orders/events"
    repeated = {**EVENT, "id": {"sequence": 1}}
    answer = check(zone, f"POST {events}", [FULL, repeated, repeated])
    assert (len(answer.json["ranges"]), len(answer.json["duplicates"])) == (1, 1)
    check(zone, f"POST {events}", {**EVENT, "body_base64": "AA==", "content_type": "x/y"})
    page = check(zone, f"GET {events}?from=oldest")
    assert len(page.json["events"]) == 2  # the first is for the client `admin` among `staff` alone
    for sequence in (2, 3):
        check(zone, f"GET {events}/{sequence}")
    for wrong in ({}, [], {**EVENT, "priority": "high"}):
        assert check(zone, f"POST {events}", wrong).status == 400
    assert check(zone, f"POST {events}", EVENT, key="").status == 401
    assert check(zone, "GET /v1/streams/none/events?from=oldest").status == 404
    assert check(zone, f"GET {events}?from=never").status == 400


def test_answers_about_interest_are_as_documented(zone: LiveZone) -> None:
    zone.create_stream("orders")
    zone.register({"streams": ["orders"], "domain": "shop", "endpoint": None})
    check(zone, "GET /v1/streams/orders/closure")
    check(zone, "GET /v1/streams/orders/closure?audience=staff")
    shape = {"shape": {"domain": "shop"}, "audience": ["staff"]}
    check(zone, "POST /v1/streams/orders/interest", shape)
    assert check(zone, "POST /v1/streams/orders/interest", {}).status == 400


def test_answers_about_types_and_filters_are_as_documented(zone: LiveZone) -> None:
    zone.create_stream("orders")
    zone.register({"streams": ["orders"], "domain": "shop"}, {"streams": ["orders"], "domain": "x"})
    zone.emit("orders", [EVENT, FULL])
    draft = {"stream": "orders", "domain": "shop", "from": "oldest", "samples": 1}
    assert check(zone, "POST /v1/filters/dry-run", draft).json["matched"] > 0
    check(zone, "POST /v1/filters/dry-run", {"stream": "orders", "domain": "none", "last": 1})
    assert check(zone, "POST /v1/filters/dry-run", {"stream": "orders", "last": 0}).status == 400
    found = check(zone, "GET /v1/streams/orders/events/1/matches").json
    assert (len(found["matches"]), len(found["nearest"])) == (1, 1)
    assert check(zone, "GET /v1/streams/orders/events/9/matches").status == 404


def test_answers_to_probes_are_as_documented(zone: LiveZone) -> None:
    for key in ("", zone.admin):
        check(zone, "GET /readyz", key=key)
    for line in ("GET /healthz", "GET /metrics"):
        check(zone, line)


def test_an_answer_that_is_not_as_documented_is_found(zone: LiveZone) -> None:
    zone.create_stream("orders")
    line = "POST /v1/streams/orders/events"
    good = zone.emit("orders", EVENT)
    assert undocumented(line, good) == []
    broken = {
        b'"stream"': b'"streams"',
        b'"duplicates": []'.replace(b" ", b""): b'"duplicates":[{"index":"0"}]',
        b'"first":1': b'"first":"1"',
    }
    for before, after in broken.items():
        assert before in good.body
        assert undocumented(line, good._replace(body=good.body.replace(before, after))) != []
    assert undocumented(line, good._replace(status=201)) != []
