"""Values that are events, and references to remote objects: they survive every codec and transport,
and filters address their fields (OIF-15).
"""

import json
from typing import Any

import pytest

from eventhub.event import cloudevents, fox_xml, oif
from tests.acceptance.delivery.test_transports_contract import listener_spec, take
from tests.acceptance.transports import TRANSPORTS
from tests.live import Answer, LiveZone
from tests.sink import Sink

PUMP = {"$ref": "corbaloc:iiop:plant:2809/Pumps;4"}
CAUSE: dict[str, Any] = {
    "domain": "plant",
    "type": "error",
    "id": {"client": "pump", "sequence": 4, "incarnation": 1, "timestamp": 2},
    "attributes": {"x": 7, "by": {"user": "Ann", "at": PUMP}, "seen": [{"n": 1}, PUMP]},
}
TEXTS = {"type": "error", "by": {"user": "Ann", "at": PUMP}}  # what an OIF string has, too


def report(**attributes: Any) -> dict[str, Any]:
    return {"domain": "plant", "type": "report", "attributes": attributes}


def shown(zone: LiveZone, sequence: int, accept: str) -> Answer:
    path = f"/v1/streams/orders/events/{sequence}"
    return zone.hub.call("GET", path, key=zone.admin, headers={"Accept": accept})


def attributes_of(zone: LiveZone, sequence: int) -> Any:
    return shown(zone, sequence, "application/json").json["attributes"]


@pytest.mark.req("OIF-15")
async def test_an_event_inside_an_event_survives_every_codec_and_transport(zone: LiveZone) -> None:
    zone.create_stream("orders")
    whole, texts = {"cause": CAUSE, "owner": PUMP}, {"cause": TEXTS, "owner": PUMP}
    assert zone.emit("orders", [report(**whole), report(**texts)]).status == 200
    assert attributes_of(zone, 1) == whole
    for transport in TRANSPORTS:
        found = await take(transport, listener_spec(zone), 2)
        assert [one.event["attributes"] for one in found] == [whole, texts], transport.__name__
    for sequence, media, expected in (
        (1, cloudevents.STRUCTURED, whole),
        (2, oif.CONTENT_TYPE, texts),
    ):
        written = shown(zone, sequence, media)
        assert (written.status, written.headers["content-type"]) == (200, media)
        again = zone.emit("orders", written.body, headers={"Content-Type": media})
        assert attributes_of(zone, again.json["ranges"][0]["first"]) == expected
    headers = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/", "ce-type": "report"}
    again = zone.emit("orders", b"{}", headers={**headers, "ce-ehattributes": json.dumps(whole)})
    assert attributes_of(zone, again.json["ranges"][0]["first"]) == whole
    assert b"owner: <corbaloc:iiop:plant:2809/Pumps;4>" in shown(zone, 2, oif.CONTENT_TYPE).body
    problem = shown(zone, 1, oif.CONTENT_TYPE).refused(406, "not_representable")
    assert problem["position"] == {"field": "cause.attributes.seen"}, "OIF has no lists"
    identified = {**report(**whole), "id": {"sequence": 1, "incarnation": 1, "timestamp": 1}}
    sequence = zone.emit("orders", identified).json["ranges"][0]["first"]
    problem = shown(zone, sequence, fox_xml.CONTENT_TYPES[0]).refused(406, "not_representable")
    assert problem["position"] == {"field": "attributes.cause"}


@pytest.mark.req("OIF-15")
def test_filters_address_the_fields_of_events_and_references(zone: LiveZone, sink: Sink) -> None:
    zone.create_stream("orders")
    endpoint = zone.endpoint(sink.url(f"/{zone.name}"))["id"]
    filters = (
        ("predicate", "(= cause.type 'error)", [1, 3]),
        ("ready", "* | $cause.type == 'error'", [1, 3]),
        ("eventbridge", {"detail": {"cause": {"type": ["error"]}}}, [1, 3]),
        ("predicate", "(= cause.attributes.x 7)", [1]),
        ("predicate", '(= `owner.$ref` "corbaloc:iiop:plant:2809/Pumps;4")', [1, 4]),
        ("predicate", "(= cause.by.at.`$ref` 1)", None),
        ("predicate", "(exists `cause.by.at.$ref`)", [3]),
        ("predicate", "(= type 'error)", [2]),
    )
    due: dict[int, list[int]] = {}
    for language, filter, expected in filters:
        body = {"streams": ["orders"], "endpoint": endpoint, "language": language, "filter": filter}
        answer = zone.hub.call("POST", "/v1/registrations", body, key=zone.admin)
        if expected is None:
            answer.refused(400, "filter_syntax")
        else:
            due |= {n: [*due.get(n, ()), answer.json["id"]] for n in expected}
    events = [
        report(cause=CAUSE, owner=PUMP),
        report(type="error", cause={**CAUSE, "type": "info", "attributes": {}}),
        report(cause=TEXTS),
        report(cause="error", owner=PUMP),
    ]
    assert zone.emit("orders", events).status == 200
    called = {one.json["sequence"]: one.json for one in sink.wait(len(due), f"/{zone.name}")}
    assert {n: one["registrations"] for n, one in called.items()} == due
    assert called[1]["event"]["attributes"] == {"cause": CAUSE, "owner": PUMP}


@pytest.mark.req("OIF-15")
@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"$ref": "pumps/4"}, "a"),
        ({"$ref": "https://plant/pump 4"}, "a"),
        ({"$ref": 4}, "a"),
        ({"$ref": "urn:pump:4", "n": 1}, "a"),
        ({"b": [1, [{"$ref": "urn:"}]]}, "a.b.1.0"),
        ({"b": {"$ref": "urn:" + "x" * 4_096}}, "a.b"),
    ],
)
def test_a_bad_reference_is_refused_with_its_position(
    zone: LiveZone, value: dict[str, Any], path: str
) -> None:
    zone.create_stream("orders")
    events = [report(text='no "$ref"', list=["$ref"]), report(a=value)]
    problem = zone.emit("orders", events).refused(400, "invalid_field")
    assert problem["position"] == {"index": 1, "field": f"attributes.{path}.$ref"}
    assert shown(zone, 1, "application/json").status == 404, "nothing was stored"
