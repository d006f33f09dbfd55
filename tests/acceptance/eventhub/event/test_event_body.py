"""The three parts of an event: header, filterable `attributes` and opaque `body` (RDY-10)."""

import base64
import json
import random
from typing import Any

import pytest

from eventhub.event import event_pb2
from tests.acceptance.delivery.test_transports_contract import listener_spec, take
from tests.acceptance.transports import TRANSPORTS
from tests.acceptance.wire import PROTOBUF, session
from tests.live import LiveHub, LiveZone
from tests.sink import Sink

HEADER: dict[str, Any] = {
    "domain": "telecom",
    "type": "alarm.link",
    "name": "lost carrier",
    "version": "2",
    "priority": 7,
    "correlation": "c-1",
    "environment": {"rack": "r 12"},
    "application": ["noc", "billing"],
}
BODY = {"port": 17, "up": False, "who": None, "rate": {"in": 1.5, "out": [1, "2"]}}
REMAINDER = bytes(range(256)) + random.Random(1).randbytes(20_000)
JSON_REMAINDER = {"image": [1, 2.5, "ü\u2028", None, {"deep": {"er": True}}], "big": 2**63 - 1}


@pytest.mark.req("RDY-10")
async def test_header_attributes_and_body_are_delivered_unchanged(
    hub: LiveHub, zone: LiveZone, sink: Sink
) -> None:
    """On every transport, by pages of history, and in callbacks of each format."""
    zone.create_stream("orders")
    paths = {form: f"/{zone.name}/{form}" for form in ("native", "cloudevents_binary")}
    for form, path in paths.items():
        endpoint = zone.endpoint(sink.url(path), format=form)["id"]
        zone.register({"streams": ["orders"], "endpoint": endpoint, "attributes": {"port": 17}})
    remainder = base64.b64encode(REMAINDER).decode()
    binary = {"body_base64": remainder, "content_type": "image/x-photo"}
    zone.emit("orders", {**HEADER, "attributes": BODY, **binary})
    zone.emit("orders", {**HEADER, "attributes": BODY, "body": JSON_REMAINDER})
    filter = {"port": 17, "rate.in": 1.5}
    native = sorted(sink.wait(2, paths["native"]), key=lambda one: int(one.json["sequence"]))
    received = {"callback": [one.json["event"] for one in native]}
    for transport in TRANSPORTS:
        found = await take(transport, listener_spec(zone, attributes=filter), 2)
        received[transport.__name__] = [one.event for one in found]
    for way, (first, second) in received.items():
        for event in (first, second):
            got = {name: event[name] for name in (*HEADER, "attributes")}
            assert got == {**HEADER, "attributes": BODY}, way
        assert base64.b64decode(first["body_base64"]) == REMAINDER, way
        assert first["content_type"] == "image/x-photo"
        assert "body" not in first
        assert second["body"] == JSON_REMAINDER, way
    clouds = {one.headers["content-type"]: one for one in sink.wait(2, paths["cloudevents_binary"])}
    assert clouds["image/x-photo"].body == REMAINDER
    assert clouds["application/json"].json == JSON_REMAINDER
    async with session(hub, zone.admin, subprotocol=PROTOBUF) as reader:
        await reader.listen("orders", start="oldest")
        frames = [message["frame"].event for message in await reader.events(2)]
    raw, as_json = map(event_pb2.Event.FromString, frames)
    assert json.loads(raw.attributes) == BODY
    assert (raw.body, raw.content_type) == (REMAINDER, "image/x-photo")
    assert (json.loads(as_json.body), as_json.content_type) == (JSON_REMAINDER, "application/json")


@pytest.mark.req("RDY-10")
@pytest.mark.parametrize(
    ("fields", "code", "position"),
    [
        ({"body": {"port": 17}}, "body_not_filterable", "body"),
        ({"body_base64": ""}, "body_not_filterable", "body_base64"),
        ({"language": "predicate", "filter": "(= @body 1)"}, "filter_syntax", "filter"),
        ({"language": "ready", "filter": "* | $header.body == 1"}, "filter_syntax", "filter"),
        (
            {"language": "eventbridge", "filter": {"body": [1]}},
            "body_not_filterable",
            "filter.body",
        ),
    ],
)
async def test_a_filter_on_the_body_is_refused(
    hub: LiveHub, zone: LiveZone, fields: dict[str, Any], code: str, position: str
) -> None:
    """By a registration and by a listener, in every language that could name it."""
    zone.create_stream("alarms")
    body = {"streams": ["alarms"], **fields}
    problem = hub.call("POST", "/v1/registrations", body, key=zone.admin).json
    async with session(hub, zone.admin) as reader:
        answer = await reader.ask("alarms", **fields)
        await reader.listen("alarms")  # the socket stays open
    assert answer["op"] == "error"
    for refusal in (problem, answer):
        assert (refusal["code"], refusal["position"]["field"]) == (code, position)
        assert "`data`" in refusal["detail"]
    listed = hub.call("GET", "/v1/registrations?stream=alarms", key=zone.admin).json["items"]
    assert listed == []


@pytest.mark.req("RDY-10")
async def test_the_body_is_never_matched_by_pairs_of_the_same_name(
    hub: LiveHub, zone: LiveZone
) -> None:
    zone.create_stream("alarms")
    async with session(hub, zone.admin) as reader:
        await reader.listen("alarms", attributes={"body.port": 17})
        await reader.listen("alarms", name="b", attributes={"port": 17})
        zone.emit("alarms", {**HEADER, "body": {"port": 17}})
        zone.emit("alarms", {**HEADER, "attributes": {"port": 17}})
        [event] = await reader.events(1)
        assert (event["listener"], event["sequence"]) == ("b", 2)
        assert await reader.nothing_waits()


@pytest.mark.req("RDY-10")
@pytest.mark.parametrize(
    "remainder", [b"[1,", b'1},"forged":{"a":1', b"\xff", b"", b"[" * 40 + b"]" * 40, b"NaN"]
)
def test_bytes_declared_as_json_that_are_not_json_are_refused(
    zone: LiveZone, remainder: bytes
) -> None:
    """Such bytes would break the frames of every JSON reader of the stream, or forge fields."""
    zone.create_stream("alarms")
    body = {"body_base64": base64.b64encode(remainder).decode(), "content_type": "application/json"}
    answer = zone.emit("alarms", {**HEADER, **body})
    assert answer.status == 400
    assert answer.json["position"]["field"] == "body_base64"


@pytest.mark.req("RDY-10")
async def test_json_sent_as_bytes_keeps_its_bytes(hub: LiveHub, zone: LiveZone) -> None:
    text = b'{ "a" : 1.0,\n"b": "\\u00fc" }'
    zone.create_stream("alarms")
    body = {"body_base64": base64.b64encode(text).decode(), "content_type": "application/json"}
    assert zone.emit("alarms", {**HEADER, **body}).status == 200
    async with (
        session(hub, zone.admin) as one,
        session(hub, zone.admin, subprotocol=PROTOBUF) as two,
    ):
        for reader in (one, two):
            await reader.listen("alarms", start="oldest")
        [as_json] = await one.events(1)
        [as_bytes] = await two.events(1)
    assert as_json["event"]["body"] == {"a": 1.0, "b": "ü"}
    assert event_pb2.Event.FromString(as_bytes["frame"].event).body == text
