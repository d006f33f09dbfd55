"""CloudEvents, OIF strings and FOX's XML through the public API."""

from typing import Any

import pytest
from cloudevents.core.bindings.http import (
    HTTPMessage,
    from_http_event,
    to_binary_event,
    to_structured_event,
)
from cloudevents.core.v1.event import CloudEvent

from tests.acceptance.wire import EVENT, session
from tests.live import Answer, LiveHub, LiveZone
from tests.unit.eventhub.event.test_fox_xml import INVALID, REFERENCE, SUMMARY, TRADE
from tests.unit.eventhub.event.test_oif import EXAMPLE, FOUR

XML = REFERENCE.replace(">fox<", ">tester<")


def emit(zone: LiveZone, body: bytes, content_type: str, **headers: str) -> Answer:
    sent = {"Content-Type": content_type, **headers}
    return zone.emit("quotes", body, headers=sent)


def show(zone: LiveZone, accept: str, sequence: int = 1) -> Answer:
    path = f"/v1/streams/quotes/events/{sequence}"
    return zone.hub.call("GET", path, key=zone.admin, headers={"Accept": accept})


def made(**more: Any) -> CloudEvent:
    attributes = {
        "id": "A-1",
        "source": "/shop/till-7",
        "type": "com.example.order.placed",
        "subject": "order 1",
        "datacontenttype": "application/json",
        "city": "Zürich",
        **more,
    }
    return CloudEvent(attributes=attributes, data={"total": 99.5, "lines": [1, 2]})


@pytest.mark.parametrize("write", [to_structured_event, to_binary_event])
async def test_the_cloudevents_package_is_interoperable(
    hub: LiveHub, zone: LiveZone, write: Any
) -> None:
    zone.create_stream("quotes")
    message = write(made())
    headers = {name.title(): value for name, value in message.headers.items()}
    content_type = headers.pop("Content-Type")
    async with session(hub, zone.admin, web=1) as reader:
        await reader.listen("quotes", attributes={"city": "Zürich"})
        assert emit(zone, message.body, content_type, **headers).json["ranges"][0]["first"] == 1
        [received] = await reader.events(1)
    event = received["event"]
    assert (event["domain"], event["type"]) == ("cloudevents", "com.example.order.placed")
    assert (event["id"], event["node"], event["key"]) == ("A-1", "/shop/till-7", "order 1")
    assert event["body"] == {"total": 99.5, "lines": [1, 2]}
    again = emit(zone, message.body, content_type, **headers).json
    assert [one["sequence"] for one in again["duplicates"]] == [1]
    other = write(made(source="/other"))
    headers = {name.title(): value for name, value in other.headers.items()}
    content_type = headers.pop("Content-Type")
    assert emit(zone, other.body, content_type, **headers).json["duplicates"] == []
    answer = show(zone, "application/cloudevents+json")
    read = from_http_event(
        HTTPMessage({"Content-Type": "application/cloudevents+json"}, answer.body)
    )
    assert (read.get_id(), read.get_source()) == ("A-1", "/shop/till-7")
    assert (read.get_subject(), read.get_extension("city")) == ("order 1", "Zürich")
    assert read.get_data() == {"total": 99.5, "lines": [1, 2]}


def test_a_batch_of_cloudevents_is_stored_completely_or_not_at_all(zone: LiveZone) -> None:
    zone.create_stream("quotes")
    bodies = [to_structured_event(made(id=id)).body for id in ("1", "2")]
    bodies.append(bodies[0].replace(b'"id": "1"', b'"id": ""').replace(b'"id":"1"', b'"id":""'))
    batch = "application/cloudevents-batch+json"
    problem = emit(zone, b"[" + b",".join(bodies) + b"]", batch).refused(400, "invalid_field")
    assert problem["position"] == {"index": 2, "field": "id"}
    answer = emit(zone, b"[" + b",".join(bodies[:2]) + b"]", batch)
    assert (answer.json["ranges"][0]["first"], answer.json["ranges"][0]["last"]) == (1, 2)
    emit(zone, b"[]", batch).refused(400, "empty_batch")


@pytest.mark.req("OIF-13")
def test_the_oif_string_survives_a_round_trip(zone: LiveZone) -> None:
    zone.create_stream("quotes")
    assert emit(zone, EXAMPLE.encode(), "text/x-oif; charset=utf-8").status == 200
    found = show(zone, "application/json").json
    assert (found["attributes"], found["type"]) == (FOUR, "error")
    answer = show(zone, "text/x-oif")
    assert answer.headers["content-type"] == "text/x-oif"
    assert answer.body.decode() == EXAMPLE
    assert emit(zone, answer.body, "text/x-oif").status == 200
    assert show(zone, "application/json", 2).json["attributes"] == FOUR
    problem = emit(zone, b"a: 1\nb; c: 2", "text/x-oif").refused(400, "invalid_field")
    assert problem["position"] == {"index": 1, "field": "property 0"}
    assert zone.emit("quotes", {**EVENT, "attributes": {"a": "b; c"}}).status == 200
    refused = show(zone, "text/x-oif", 3).refused(406, "not_representable")
    assert refused["position"] == {"field": "a"}


@pytest.mark.req("FOX-18")
def test_the_reference_event_survives_a_round_trip(zone: LiveZone) -> None:
    zone.create_stream("quotes")
    assert emit(zone, XML.encode(), "application/xml").status == 200
    found = show(zone, "application/json").json
    assert found["id"] == {
        "client": "tester",
        "timestamp": 1_700_000_000_000_000,
        "sequence": 7,
        "incarnation": 2,
    }
    assert (found["bundle"], found["bundle_number"], found["depends"]) == ("b1", 3, ["a", "b"])
    out = show(zone, "application/xml").body
    assert [out.count(b"<Mspaces:" + name) for name in (b"Summary>", b"ApplicationType>")] == [1, 1]
    again = emit(zone, out, "text/xml").json
    assert [one["sequence"] for one in again["duplicates"]] == [1], "a duplicate by its id"


@pytest.mark.req("FOX-18")
@pytest.mark.parametrize("name", ["two summaries", "a bundle number alone"])
def test_an_invalid_document_is_refused(zone: LiveZone, name: str) -> None:
    zone.create_stream("quotes")
    text, path = INVALID[name]
    problem = emit(zone, text.encode(), "application/xml").refused(400, "invalid_xml")
    assert problem["position"] == {"field": path}
    assert problem["line"] >= 1


@pytest.mark.req("FOX-18")
@pytest.mark.parametrize("count", [0, 3])
def test_any_number_of_applications_is_valid(zone: LiveZone, count: int) -> None:
    zone.create_stream("quotes")
    text = XML.replace(TRADE, TRADE * count).replace(SUMMARY, "")
    assert emit(zone, text.encode(), "application/xml").status == 200
    assert show(zone, "application/json").json.get("application", []) == ["trade"] * count
    assert show(zone, "application/xml").body.count(b"<Mspaces:ApplicationType>") == count


@pytest.mark.req("FOX-19")
async def test_an_event_without_attributes_is_live_and_of_level_med(
    hub: LiveHub, zone: LiveZone
) -> None:
    zone.create_stream("quotes")
    text = XML.replace(' Securitylevel="high" Liveness="recovery"', "")
    async with session(hub, zone.admin) as reader:
        await reader.listen("quotes")
        assert emit(zone, text.encode(), "application/xml").status == 200
        [received] = await reader.events(1)
    assert received["liveness"] == "live"
    assert show(zone, "application/json").json["control"]["security_level"] == "med"
    assert b'Securitylevel="med"' in show(zone, "application/xml").body


def test_an_event_in_xml_must_name_the_callers_client_and_the_stream(zone: LiveZone) -> None:
    zone.create_stream("quotes")
    zone.create_stream("other")
    foreign = emit(zone, REFERENCE.encode(), "application/xml").refused(400, "invalid_field")
    assert foreign["position"]["field"] == "Event/EventId/ClientId"
    headers = {"Content-Type": "application/xml"}
    elsewhere = zone.emit("other", XML.encode(), headers=headers).refused(400, "invalid_field")
    assert elsewhere["position"]["field"] == "Event/StreamId"


def test_xml_with_entities_is_refused(zone: LiveZone) -> None:
    zone.create_stream("quotes")
    bomb = '<!DOCTYPE Event [<!ENTITY a "x"><!ENTITY b "&a;&a;&a;">]>'
    text = XML.replace('<?xml version="1.0"?>', bomb).replace(">trade<", ">&b;<")
    emit(zone, text.encode(), "application/xml").refused(400, "malformed_xml")


def test_other_accept_headers_get_json(zone: LiveZone) -> None:
    zone.create_stream("quotes")
    assert zone.emit("quotes", EVENT).status == 200
    browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
    for accept in ("*/*", browser, "image/png"):
        answer = show(zone, accept)
        assert answer.headers["content-type"] == "application/json"
        assert answer.json["sequence"] == 1
    refused = show(zone, "application/xml").refused(406, "not_representable")
    assert refused["position"] == {"field": "id"}
    for headers in ({"Content-Type": "text/plain"}, {"Content-Encoding": "gzip"}):
        answer = zone.emit("quotes", b"{}", headers=headers)
        answer.refused(415, "unsupported_media_type")
        position = [answer.headers[f"eventhub-{name}"] for name in ("segment", "sequence")]
        assert position == [show(zone, "*/*").json["segment"], "1"], "that of the stream"
