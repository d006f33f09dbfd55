"""The envelope, ids and idempotency through the public API."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from eventhub.base.clock import ManualClock
from eventhub.event import event_pb2
from eventhub.event.identity import IdIssuer
from tests.acceptance.wire import EVENT, PROTOBUF, session
from tests.live import Answer, LiveHub, LiveZone

DEFAULT = str(1 << 63)


def shown(zone: LiveZone, sequence: int, stream: str = "fox") -> dict[str, Any]:
    answer = zone.hub.call("GET", f"/v1/streams/{stream}/events/{sequence}", key=zone.admin)
    assert answer.status == 200, answer
    found: dict[str, Any] = answer.json
    return found


def emit(zone: LiveZone, *events: dict[str, Any], web: int = 0, key: str | None = None) -> Answer:
    """Emit events. `key`: the Idempotency-Key of the request."""
    headers = {} if key is None else {"Idempotency-Key": key}
    return zone.emit("fox", list(events), url=zone.hub.web[web].url, headers=headers)


@pytest.mark.req("FOX-01")
def test_a_stored_event_has_all_fields(zone: LiveZone) -> None:
    zone.create_stream("fox")
    given: dict[str, Any] = {
        **EVENT,
        "id": {"timestamp": 5, "sequence": 1, "incarnation": 2},
        "attributes": {"a": 1, "b": {"c": [True, None, "x"]}},
        "application": ["trade", "audit"],
        "priority": 7,
        "depends": ["other", "bundle:b0"],
        "bundle": "b1",
        "bundle_number": 3,
        "time_constraint_ms": 500,
        "merge_scheme": "zip",
        "destinations": ["tester", "c7"],
        "security_level": "high",
        "summary": "all of it",
        "key": "k",
        "tombstone": True,
        "order": "none",
    }
    assert emit(zone, given).status == 200
    found = shown(zone, 1)
    assert found["stream"] == "fox"
    assert found["id"] == {"client": "tester", **given["id"]}
    assert {name: found[name] for name in given if name != "id"} == {
        name: value for name, value in given.items() if name != "id"
    }


@pytest.mark.req("FOX-06")
def test_the_tags_of_an_event_are_its_signature(zone: LiveZone) -> None:
    zone.create_stream("fox")
    tags: list[dict[str, Any]] = [{"a": 1, "b": 2}, {"b": 9, "a": 3}, {"a": 1}]
    assert emit(zone, *({**EVENT, "attributes": one} for one in tags)).status == 200
    first, same, other = (shown(zone, sequence)["signature"] for sequence in (1, 2, 3))
    assert first == same
    assert first != other


@pytest.mark.req("FOX-08")
def test_a_restarted_sequence_repeats_no_event(zone: LiveZone) -> None:
    zone.create_stream("fox")
    clock = ManualClock()
    t0 = clock.now_us()
    issuer = IdIssuer(client="tester", clock=clock, incarnation=1, sequence_max=3)
    clock.advance_s(1)
    ids = [issuer.next() for _ in range(4)]
    t1 = ids[3].timestamp_us
    assert t1 > t0
    assert [made.order for made in ids] == [(t0, 1), (t0, 2), (t0, 3), (t1, 1)]
    events = [{**EVENT, "id": made.wire()} for made in ids]
    assert emit(zone, *events).json["duplicates"] == []
    again = emit(zone, *events, web=1).json
    assert [one["sequence"] for one in again["duplicates"]] == [1, 2, 3, 4]
    clock.advance_s(1)
    restarted = IdIssuer(client="tester", clock=clock, incarnation=1, sequence_max=3)
    made = restarted.next()
    assert (made.sequence, made.timestamp_us) == (1, clock.now_us())
    answer = emit(zone, {**EVENT, "id": made.wire()}).json
    assert (answer["duplicates"], answer["ranges"][0]["first"]) == ([], 5)


CONTROLS: dict[str, tuple[Any, Any, Any]] = {  # default, given, shown
    "channels": (["default"], ["disk"], ["disk"]),
    "destinations": ([], ["tester"], ["tester"]),
    "audience": ([], ["ops"], ["ops"]),
    "expires_at": (None, "2999-01-01T00:00:00Z", "2999-01-01T00:00:00.000000Z"),
    "priority": (0, -7, -7),
    "security_level": ("med", "low", "low"),
    "order": ("session", "causal", "causal"),
}


@pytest.mark.req("FOX-10")
def test_each_control_has_a_default_that_an_explicit_value_overrides(zone: LiveZone) -> None:
    zone.create_stream("fox")
    zone.define_channel("disk", 2)
    zone.hub.call("PATCH", "/v1/clients/tester", {"groups": ["ops"]}, key=zone.admin)
    given = {name: value for name, (_, value, _) in CONTROLS.items()}
    assert emit(zone, EVENT, {**EVENT, **given}).status == 200
    plain, explicit = shown(zone, 1), shown(zone, 2)
    assert plain["control"] == {name: default for name, (default, _, _) in CONTROLS.items()}
    assert explicit["control"] == {name: expected for name, (_, _, expected) in CONTROLS.items()}
    assert (plain["mask"], explicit["mask"]) == (DEFAULT, "4")


@pytest.mark.req("EMC-21")
async def test_names_of_channels_map_to_bits_and_back(hub: LiveHub, zone: LiveZone) -> None:
    zone.create_stream("fox")
    named = {"disk": 0, "firewall": 1, "compute-node": 2, "security": 62}
    for name, bit in named.items():
        zone.define_channel(name, bit)
    async with session(hub, zone.admin, web=1) as reader:
        await reader.listen("fox", mask=["firewall", "security"])
        for channels in (["disk"], ["firewall", "disk"], ["security"], []):
            assert emit(zone, {**EVENT, "channels": channels}).status == 200
        received = await reader.events(2)
        assert await reader.nothing_waits()
    assert [one["event"]["mask"] for one in received] == ["3", str(1 << 62)]
    assert emit(zone, {**EVENT, "mask": str((1 << 62) + 8 + 1)}).status == 200
    assert [shown(zone, sequence)["channels"] for sequence in range(1, 6)] == [
        ["disk"],
        ["disk", "firewall"],
        ["security"],
        ["default"],
        ["disk", "security"],
    ]


@pytest.mark.req("EMC-21")
def test_a_zone_has_at_most_64_channels(hub: LiveHub, zone: LiveZone) -> None:
    for bit in range(63):
        zone.define_channel(f"c{bit}", bit)
    listed = hub.call("GET", "/v1/channels", key=zone.admin).json["items"]
    assert [item["bit"] for item in listed] == list(range(64))
    body = {"mask": str(1 << 63)}
    hub.call("PUT", "/v1/channels/more", body, key=zone.admin).refused(400, "not_power_of_two")
    hub.call("PUT", "/v1/channels/more", {"mask": "1"}, key=zone.admin).refused(
        409, "channel_conflict"
    )


@pytest.mark.req("EMC-30")
async def test_stored_events_are_smaller_than_their_json(hub: LiveHub, zone: LiveZone) -> None:
    zone.create_stream("fox")
    given = {**EVENT, "attributes": {"a": 1, "b": 2.5, "c": "three", "d": True, "e": None}}
    async with (
        session(hub, zone.admin) as text,
        session(hub, zone.admin, subprotocol=PROTOBUF) as binary,
    ):
        for reader in (text, binary):
            await reader.listen("fox")
        assert emit(zone, given).status == 200
        [as_json] = await text.events(1)
        [as_frame] = await binary.events(1)
    payload = as_frame["frame"].event
    event = event_pb2.Event.FromString(payload)
    assert event.SerializeToString() == payload
    assert (event.domain, event.type) == (given["domain"], given["type"])
    assert json.loads(event.attributes) == given["attributes"]
    assert len(payload) < len(json.dumps(as_json["event"], separators=(",", ":")))


REPEATED: dict[str, tuple[dict[str, Any], str | None]] = {
    "key": (EVENT, "one"),
    "text id": ({**EVENT, "id": "order 1"}, None),
    "id object": ({**EVENT, "id": {"sequence": 1}}, None),
}


@pytest.mark.req("EMC-36")
@pytest.mark.parametrize(("event", "key"), REPEATED.values(), ids=REPEATED)
async def test_the_same_event_twice_has_one_sequence_returned_twice(
    hub: LiveHub, zone: LiveZone, event: dict[str, Any], key: str | None
) -> None:
    zone.create_stream("fox")
    async with session(hub, zone.admin, web=1) as reader:
        await reader.listen("fox")
        first = emit(zone, event, key=key).json
        again = emit(zone, event, web=1, key=key).json
        [run] = first["ranges"]
        assert (run["first"], run["last"], again["ranges"]) == (1, 1, [])
        assert again["duplicates"] == [{"index": 0, "segment": run["segment"], "sequence": 1}]
        assert emit(zone, EVENT).status == 200
        assert [one["sequence"] for one in await reader.events(2)] == [1, 2]


@pytest.mark.req("EMC-36")
def test_duplicates_of_a_request_are_detected_by_index(zone: LiveZone) -> None:
    zone.create_stream("fox")
    assert emit(zone, EVENT, EVENT, key='"a b"').json["duplicates"] == []
    longer = emit(zone, EVENT, EVENT, EVENT, key="a b").json
    assert [one["index"] for one in longer["duplicates"]] == [0, 1]
    assert [run["first"] for run in longer["ranges"]] == [3]
    assert emit(zone, EVENT, key="another").json["duplicates"] == []
    other = zone.key("emit:*", client="other")
    answer = zone.emit("fox", EVENT, key=other, headers={"Idempotency-Key": "a b"})
    assert answer.json["duplicates"] == [], "another client's key is another key"
    twice = {**EVENT, "id": "x"}
    both = emit(zone, twice, twice).json
    assert [one["index"] for one in both["duplicates"]] == [1]
    elsewhere = {**twice, "node": "elsewhere"}
    assert emit(zone, elsewhere).json["duplicates"] == [], "an id is unique within its node"


@pytest.mark.req("EMC-36")
def test_concurrent_repeats_at_both_processes_are_one_event(zone: LiveZone) -> None:
    zone.create_stream("fox")
    with ThreadPoolExecutor(8) as pool:
        asked = [
            pool.submit(emit, zone, {**EVENT, "id": "same"}, web=number % 2) for number in range(24)
        ]
        answers = [one.result().json for one in asked]
    assert sorted(len(answer["ranges"]) for answer in answers) == [0] * 23 + [1]
    assert {d["sequence"] for answer in answers for d in answer["duplicates"]} == {1}


@pytest.mark.parametrize("key", ["", "é", "x" * 201, '""'])
def test_a_bad_idempotency_key_is_refused(zone: LiveZone, key: str) -> None:
    zone.create_stream("fox")
    problem = emit(zone, EVENT, key=key).json
    assert problem["code"] in ("invalid_field", "field_too_long")
    assert problem["position"]["field"] == "Idempotency-Key"


def test_the_answer_has_the_resulting_sequences(zone: LiveZone) -> None:
    zone.create_stream("fox")
    answer = emit(zone, EVENT, EVENT)
    segment = answer.json["ranges"][0]["segment"]
    names = ("eventhub-caused", "eventhub-sequence", "eventhub-segment")
    assert [answer.headers[name] for name in names] == ["1-2", "2", segment]


def test_a_field_that_needs_another_is_refused_with_it(zone: LiveZone) -> None:
    zone.create_stream("fox")
    for given, field in (({"tombstone": True}, "key"), ({"bundle_number": 1}, "bundle")):
        problem = emit(zone, EVENT, {**EVENT, **given}).refused(400, "missing_field")
        assert problem["position"] == {"index": 1, "field": field}


@pytest.mark.req("RDY-50")
def test_an_expiry_is_absolute_or_relative(zone: LiveZone) -> None:
    zone.create_stream("fox")
    before = datetime.now(UTC)
    assert emit(zone, {**EVENT, "expires_in_ms": 60_000}).status == 200
    found = datetime.fromisoformat(shown(zone, 1)["expires_at"])
    assert before <= found - timedelta(minutes=1) <= datetime.now(UTC)
    both = {**EVENT, "expires_in_ms": 1, "expires_at": before.isoformat()}
    problem = emit(zone, both).refused(400, "invalid_field")
    assert problem["position"] == {"index": 0, "field": "expires_in_ms"}
    for value in (0, 1 << 60):
        emit(zone, {**EVENT, "expires_in_ms": value}).refused(400, "invalid_field")
    emit(zone, {**EVENT, "order": "fifo"}).refused(400, "invalid_field")
