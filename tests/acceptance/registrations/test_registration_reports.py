"""The four arguments of a registration (OIF-04), and the derived event of a report (OIF-06)."""

import json
from typing import Any

import pytest

from tests.acceptance.delivery.test_transports_contract import listener_spec, take
from tests.acceptance.registrations.test_bulk import sent as sent_in_bulk
from tests.acceptance.transports import Transport, each_transport
from tests.acceptance.wire import until
from tests.live import Answer, LiveHub, LiveZone
from tests.sink import Sink

JOE = {"user": "Joe", "type": "error", "cause": {"file": "maknam"}}
EVENT: dict[str, Any] = {
    "domain": "shop",
    "type": "read",
    "time": "2026-11-21T08:00:00.000000Z",
    "environment": {"host": "h1", "trace": "T"},
    "body": {"secret": 1},
    "name": "n",
    "key": "k",
    "priority": 5,
    "correlation": "c",
}
TWO = {"user": "Joe", "env.host": "h1"}


def sent(number: int, **attributes: Any) -> dict[str, Any]:
    made = {"sequence": number, "incarnation": 2, "timestamp": 3}
    return {**EVENT, "id": made, "attributes": {**JOE, **attributes}}


def derived(number: int, attributes: dict[str, Any]) -> dict[str, Any]:
    """Return the identity of the event with that number, with exactly those attributes."""
    event = sent(number)
    return {
        **{name: event[name] for name in ("domain", "type", "time")},
        "id": {"client": "tester", **event["id"]},
        "source": "tester",
        "node": "tester",
        "mask": str(1 << 63),
        "attributes": attributes,
    }


def post(zone: LiveZone, **fields: Any) -> Answer:
    body = {"streams": ["orders"], **fields}
    return zone.hub.call("POST", "/v1/registrations", body, key=zone.admin)


def emit(zone: LiveZone, *events: dict[str, Any]) -> None:
    answer = zone.emit("orders", list(events))
    assert answer.status == 200, answer


@pytest.mark.req("OIF-04")
def test_a_registration_takes_four_arguments(zone: LiveZone, sink: Sink) -> None:
    """The consumer, a filter in a named language, a report, and OIF's signature: the properties
    that the filter demands. It is optional, and compared with the filter at every change.
    """
    zone.create_stream("orders")
    path = f"/{zone.name}"
    fields: dict[str, Any] = {
        "callback": sink.url(path),
        "language": "predicate",
        "filter": "(and (or (= type 'error) (= type 'warning)) (= user 'Joe))",
        "report": ["user", "env.host"],
    }
    answer = post(zone, **fields, signature=["user", "type"])
    assert answer.status == 201, answer
    made = answer.json
    assert (made["callback"], made["language"]) == (sink.url(path), "predicate")
    registration = f"/v1/registrations/{made['id']}"
    shown = zone.hub.call("GET", registration, key=zone.admin).json
    assert (shown["report"], shown["signature"]) == (["user", "env.host"], ["type", "user"])
    emit(zone, sent(1, user="Ann"), sent(2))
    [called] = sink.wait(1, path)
    assert called.json["event"] == derived(2, TWO)
    assert post(zone, **fields).json["signature"] == ["type", "user"], "it may be omitted"

    def refusal(answer: Answer) -> tuple[Any, ...]:
        problem = answer.refused(422, "signature_mismatch")
        return problem["position"], problem["given"], problem["demanded"]

    position = {"field": "signature"}
    wrong = post(zone, **fields, signature=["user"])
    assert refusal(wrong) == (position, ["user"], ["type", "user"])
    change = {"language": "propositional", "filter": "(or user host)", "signature": ["user"]}
    answer = zone.hub.call("PATCH", registration, change, key=zone.admin)
    assert refusal(answer) == (position, ["user"], [])
    answer = zone.hub.call("PATCH", registration, {"signature": ["host"]}, key=zone.admin)
    assert refusal(answer) == (position, ["host"], ["type", "user"])
    [first, *_] = sent_in_bulk(zone, [{"op": "change", "id": made["id"], "signature": []}])
    assert (first["error"]["code"], first["error"]["given"]) == ("signature_mismatch", [])
    answer = zone.hub.call("PATCH", registration, {**change, "signature": []}, key=zone.admin)
    assert (answer.status, answer.json["signature"]) == (200, [])


@pytest.mark.req("OIF-04")
@pytest.mark.parametrize(
    ("fields", "code", "position"),
    [
        ({"callback": "no URL"}, "invalid_field", {"field": "callback"}),
        ({"language": "english", "filter": "all"}, "unknown_language", {"field": "language"}),
        (
            {"language": "predicate", "filter": "(and (= user 'Joe)\n     (like type 'error))"},
            "filter_syntax",
            {"field": "filter"},
        ),
        ({"report": "user"}, "invalid_field", {"field": "report"}),
        ({"report": ["user", "@nobody"]}, "invalid_field", {"field": "report.1"}),
        ({"report": {"who": {"const": []}}}, "invalid_field", {"field": "report.who"}),
        ({"signature": "user"}, "invalid_field", {"field": "signature"}),
        ({"signature": ["user", 5]}, "invalid_field", {"field": "signature.1"}),
        ({"signature": ["user", "user"]}, "invalid_field", {"field": "signature.1"}),
        ({"signature": ["u" * 1_025]}, "field_too_long", {"field": "signature.0"}),
        ({"signature": [str(n) for n in range(1_001)]}, "field_too_long", {"field": "signature"}),
    ],
)
def test_an_invalid_field_is_refused_with_its_position(
    zone: LiveZone, fields: dict[str, Any], code: str, position: dict[str, Any]
) -> None:
    zone.create_stream("orders")
    problem = post(zone, **fields).refused(400, code)
    place = problem["position"]
    assert {name: place[name] for name in position} == position
    if code == "filter_syntax":
        assert (problem["line"], problem["column"]) == (2, 7)
    made = post(zone).json
    path = f"/v1/registrations/{made['id']}"
    if "callback" not in fields:
        zone.hub.call("PATCH", path, fields, key=zone.admin).refused(400, code)
    assert zone.hub.call("GET", path, key=zone.admin).json["version"] == 1


@pytest.mark.req("OIF-06")
@each_transport
async def test_a_listener_receives_the_reports_of_its_registrations(
    zone: LiveZone, transport: Transport
) -> None:
    """Exactly the two; under other names; the whole event where there is no report; the fields of
    all that matched, and the whole if one of them wants it; by the version that matched.
    """
    zone.create_stream("orders")
    ids = [
        post(zone, attributes={"n": n}, report=report).json["id"]
        for n, report in (
            (1, ["user", "env.host"]),
            (2, {"who": "user", "hub": {"const": 7}, "file": "cause.file", "gone": "missing"}),
            (2, ["user", "type"]),
            (3, ["user"]),
            (3, None),
        )
    ]
    emit(zone, *(sent(n, n=n) for n in (1, 2, 3)))
    path = f"/v1/registrations/{ids[0]}"
    change = {"report": ["@type"]}
    assert zone.hub.call("PATCH", path, change, key=zone.admin).json["report"] == ["@type"]
    emit(zone, sent(4, n=1))
    assert zone.hub.call("PATCH", path, {"report": None}, key=zone.admin).status == 200
    emit(zone, sent(5, n=1))
    received = await take(transport, listener_spec(zone, registrations=ids), 5)
    assert [one.registrations for one in received] == [
        (ids[0],), (ids[1], ids[2]), (ids[3], ids[4]), (ids[0],), (ids[0],)
    ]  # fmt: skip
    both = {"who": "Joe", "hub": 7, "file": "maknam", "user": "Joe", "type": "error"}
    assert received[0].event == derived(1, TWO)
    assert received[1].event == derived(2, both)
    assert received[3].event == derived(4, {"@type": "read"})
    for whole, n in ((received[2], 3), (received[4], 1)):
        assert whole.event["attributes"] == {**JOE, "n": n}
        assert whole.event["body"] == EVENT["body"]


@pytest.mark.req("OIF-06")
async def test_a_callback_has_the_reports_of_the_versions_that_matched(
    hub: LiveHub, zone: LiveZone, sink: Sink
) -> None:
    """In each format, even if the report changed before the callback was sent."""
    zone.create_stream("orders")
    formats = ("native", "cloudevents_structured", "cloudevents_binary")
    paths = {format: f"/{zone.name}/{format}" for format in formats}
    ends = {format: zone.endpoint(sink.url(paths[format]), format=format) for format in formats}
    made = {
        format: post(zone, endpoint=end["id"], report=["user", "env.host"]).json["id"]
        for format, end in ends.items()
    }
    other = post(zone, endpoint=ends["native"]["id"], attributes={"n": 2}).json["id"]

    def enable(enabled: bool) -> None:
        for end in ends.values():
            path = f"/v1/endpoints/{end['id']}"
            assert hub.call("PATCH", path, {"enabled": enabled}, key=zone.admin).status == 200

    def pending() -> int:
        answers = [
            hub.call("GET", f"/v1/deliveries?endpoint={end['id']}", key=zone.admin).json["items"]
            for end in ends.values()
        ]
        return sum(map(len, answers))

    enable(False)
    emit(zone, sent(1, n=1), sent(2, n=2))
    await until(lambda: pending() == 6)
    for id in made.values():
        path = f"/v1/registrations/{id}"
        assert hub.call("PATCH", path, {"report": ["cause"]}, key=zone.admin).status == 200
    enable(True)
    calls = {format: sink.wait(2, path) for format, path in paths.items()}
    native = {one.json["sequence"]: one.json for one in calls["native"]}
    assert native[1]["event"] == derived(1, TWO)
    assert native[2]["registrations"] == [made["native"], other]
    assert native[2]["event"]["body"] == EVENT["body"], "one of them wants the whole event"
    for format in formats[1:]:
        for called in calls[format]:
            assert called.headers["content-type"] == "application/cloudevents+json", "no body"
            found = {name: value for name, value in called.json.items() if name != "id"}
            assert found == {
                "specversion": "1.0",
                "type": "read",
                "source": "tester",
                "domain": "shop",
                "time": EVENT["time"],
                "user": "Joe",
                "ehattributes": json.dumps({"env.host": "h1"}, separators=(",", ":")),
            }
            assert called.verified(ends[format]["secret"])
    emit(zone, sent(3, n=3))
    [*_, later] = sink.wait(3, paths["native"])
    assert later.json["event"] == derived(3, {"cause": JOE["cause"]})
