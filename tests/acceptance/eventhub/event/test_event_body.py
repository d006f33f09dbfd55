"""The three parts of an event: header, filterable `attributes` and opaque `body` (RDY-10)."""

import base64
import json
import random
from typing import Any

import pytest

from eventhub.event import event_pb2
from tests.acceptance.wire import JSON, PROTOBUF, session
from tests.live import LiveHub, LiveZone

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
@pytest.mark.parametrize("subprotocol", [JSON, PROTOBUF])
async def test_header_attributes_and_body_are_delivered_unchanged(
    hub: LiveHub, zone: LiveZone, subprotocol: str
) -> None:
    zone.create_stream("alarms")
    remainder = base64.b64encode(REMAINDER).decode()
    binary = {"body_base64": remainder, "content_type": "image/x-photo"}
    zone.emit("alarms", {**HEADER, "attributes": BODY, **binary})
    zone.emit("alarms", {**HEADER, "attributes": BODY, "body": JSON_REMAINDER})
    async with session(hub, zone.admin, subprotocol=subprotocol) as reader:
        await reader.listen("alarms", start="oldest", attributes={"port": 17, "rate.in": 1.5})
        first, second = await reader.events(2)
    if subprotocol == JSON:
        for message in (first, second):
            got = {name: message["event"][name] for name in (*HEADER, "attributes")}
            assert got == {**HEADER, "attributes": BODY}
        assert base64.b64decode(first["event"]["body_base64"]) == REMAINDER
        assert first["event"]["content_type"] == "image/x-photo"
        assert "body" not in first["event"]
        assert second["event"]["body"] == JSON_REMAINDER
        return
    raw, as_json = (
        event_pb2.Event.FromString(message["frame"].event) for message in (first, second)
    )
    assert (raw.domain, raw.type, raw.name, raw.priority) == (
        "telecom",
        "alarm.link",
        "lost carrier",
        7,
    )
    assert json.loads(raw.attributes) == BODY
    assert (raw.body, raw.content_type) == (REMAINDER, "image/x-photo")
    assert (json.loads(as_json.body), as_json.content_type) == (JSON_REMAINDER, "application/json")


@pytest.mark.req("RDY-10")
@pytest.mark.parametrize("field", ["body", "body_base64"])
async def test_a_filter_on_the_body_is_refused(hub: LiveHub, zone: LiveZone, field: str) -> None:
    zone.create_stream("alarms")
    async with session(hub, zone.admin) as reader:
        request: dict[str, Any] = {field: {"port": 17}}
        answer = await reader.ask("alarms", **request)
        assert (answer["op"], answer["code"]) == ("error", "body_not_filterable")
        assert answer["position"] == {"field": field}
        await reader.listen("alarms")  # the socket stays open


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
