"""The state of a keyed stream over REST (EMC-42): snapshots, single keys, conditions."""

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import pytest

from tests.acceptance.eventhub.api.test_reply_sequences import SEQUENCE, ask, event_of
from tests.live import Answer, LiveZone


def pages(zone: LiveZone, stream: str, limit: int) -> Iterator[Answer]:
    after: str | None = ""
    while after is not None:
        page = ask(zone, "GET", f"streams/{stream}/state?limit={limit}&after={after}")
        assert page.status == 200, page
        yield page
        after = page.json["next"]


@pytest.mark.req("EMC-42")
def test_the_state_equals_the_fold_of_the_stream(zone: LiveZone) -> None:
    """100 random changes at both processes; the state is the latest event of each key."""
    zone.create_stream("apps", keyed=True, segment_events_max=7)
    chance = random.Random(42)
    keys = ["web/1", "web/2", "db", "ü€", "a b", "x" * 1024]
    for number in range(100):
        key = chance.choice(keys)
        kind = chance.choice(["emit", "put", "delete", "tombstone"])
        path = f"streams/apps/state/{quote(key, safe='/')}"
        event = {"domain": "d", "type": "app.state", "attributes": {"n": number}}
        if kind == "emit":
            assert zone.emit("apps", {**event, "key": key}).status == 200
        elif kind == "tombstone":
            assert zone.emit("apps", {**event, "key": key, "tombstone": True}).status == 200
        elif kind == "put":
            assert ask(zone, "PUT", path, event).status in (200, 201)
        else:
            assert ask(zone, "DELETE", path).status in (204, 404)
    last = ask(zone, "GET", "streams/apps").json["last"]
    folded: dict[str, int] = {}
    for sequence in range(1, last + 1):
        event = event_of(zone, "apps", sequence)
        folded.pop(event["key"], None)
        if not event.get("tombstone"):
            folded[event["key"]] = sequence
    found = [page.json for page in pages(zone, "apps", limit=2)]
    assert {page["cursor"]["sequence"] for page in found} == {last}
    shown = {item["key"]: item for page in found for item in page["items"]}
    assert {key: item["sequence"] for key, item in shown.items()} == folded
    assert folded
    for key, sequence in folded.items():
        one = ask(zone, "GET", f"streams/apps/state/{quote(key, safe='/')}")
        assert one.json == shown[key]
        assert one.headers["etag"] == f'"{sequence}"'
        assert one.headers[SEQUENCE] == str(last)
        assert one.json["event"]["attributes"] == event_of(zone, "apps", sequence)["attributes"]


@pytest.mark.req("EMC-42")
def test_a_snapshot_and_the_events_after_it_make_the_state(zone: LiveZone) -> None:
    """Keys that change between two pages drop out of the snapshot; their events come after its
    cursor.
    """
    zone.create_stream("apps", keyed=True)
    event = {"domain": "d", "type": "app.state"}
    zone.emit("apps", [{**event, "key": f"k{number}"} for number in range(30)])
    state: dict[str, int] = {}
    cursors = set()
    for turn, page in enumerate(pages(zone, "apps", limit=10)):
        cursors.add(page.json["cursor"]["sequence"])
        state |= {item["key"]: item["sequence"] for item in page.json["items"]}
        zone.emit("apps", {**event, "key": f"k{turn}", "attributes": {"turn": turn}})
        ask(zone, "DELETE", f"streams/apps/state/k{20 + turn}")
    [cursor] = cursors
    for sequence in range(cursor + 1, ask(zone, "GET", "streams/apps").json["last"] + 1):
        later = event_of(zone, "apps", sequence)
        state.pop(later["key"], None)
        if not later.get("tombstone"):
            state[later["key"]] = sequence
    fresh = [item for page in pages(zone, "apps", limit=100) for item in page.json["items"]]
    assert state == {item["key"]: item["sequence"] for item in fresh}


def test_a_deletion_under_a_condition_sees_other_deletions(zone: LiveZone) -> None:
    zone.create_stream("apps", keyed=True)
    event = {"domain": "d", "type": "app.state"}
    put = ask(zone, "PUT", "streams/apps/state/a", event)
    assert ask(zone, "DELETE", "streams/apps/state/a", If_Match="1").status == 204
    refusal = ask(zone, "PUT", "streams/apps/state/a", event, If_Match=put.headers["etag"])
    assert refusal.refused(412, "changed")["current"] == 0
    ask(zone, "GET", "streams/apps/state/a").refused(404, "unknown_key")
    ask(zone, "DELETE", "streams/apps/state/a").refused(404, "unknown_key")


def test_of_puts_at_the_same_time_one_is_taken(zone: LiveZone) -> None:
    zone.create_stream("apps", keyed=True)
    event = {"domain": "d", "type": "app.state"}

    def put(number: int) -> int:
        body = {**event, "attributes": {"n": number}}
        return ask(zone, "PUT", "streams/apps/state/a", body, If_None_Match="*").status

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(put, range(8))) == [201] + [412] * 7


@pytest.mark.parametrize(
    ("body", "status", "code", "field"),
    [
        ({"domain": "d"}, 400, "missing_field", "type"),
        ({"domain": "d", "type": "t", "key": "b"}, 400, "invalid_field", "key"),
        ({"domain": "d", "type": "t", "tombstone": True}, 400, "invalid_field", "key"),
        ({"domain": "d", "type": "t", "id": "x"}, 400, "invalid_field", "id"),
        ({"domain": "d", "type": "t", "channels": ["no"]}, 400, "unknown_channel", "channels"),
        ([{"domain": "d", "type": "t"}] * 2, 413, "batch_too_large", None),
        (b"{", 400, "malformed_json", None),
    ],
)
def test_a_state_that_is_not_an_event_is_refused(
    zone: LiveZone, body: Any, status: int, code: str, field: str | None
) -> None:
    zone.create_stream("apps", keyed=True)
    problem = ask(zone, "PUT", "streams/apps/state/a", body).refused(status, code)
    assert problem["position"].get("field") == field
    assert ask(zone, "GET", "streams/apps").json["last"] == 0


def test_state_needs_a_grant_and_a_keyed_stream(zone: LiveZone) -> None:
    zone.create_stream("apps", keyed=True)
    zone.create_stream("plain")
    event = {"domain": "d", "type": "t"}
    reader, writer = zone.key("listen:apps"), zone.key("emit:apps")
    path = "/v1/streams/apps/state/a"
    zone.hub.call("PUT", path, event, key=reader).refused(403, "forbidden")
    assert zone.hub.call("PUT", path, event, key=writer).status == 201
    zone.hub.call("GET", path, key=writer).refused(403, "forbidden")
    assert zone.hub.call("GET", path, key=reader).status == 200
    zone.hub.call("DELETE", path, key=reader).refused(403, "forbidden")
    zone.hub.operate("PUT", f"{path}?zone={zone.name}", event).refused(403, "forbidden")
    for plain in ("plain", "system"):
        ask(zone, "GET", f"streams/{plain}/state").refused(409, "not_keyed")
    ask(zone, "PUT", "streams/plain/state/a", event).refused(409, "not_keyed")
    ask(zone, "GET", "streams/absent/state").refused(404, "unknown_stream")


def test_state_for_other_clients_is_hidden(zone: LiveZone) -> None:
    zone.create_stream("apps", keyed=True)
    event = {"domain": "d", "type": "t", "destinations": ["other"]}
    assert ask(zone, "PUT", "streams/apps/state/a", event).status == 201
    ask(zone, "GET", "streams/apps/state/a").refused(404, "unknown_key")
    ask(zone, "GET", "streams/apps/events/1").refused(404, "unknown_event")
    assert ask(zone, "GET", "streams/apps/state").json["items"] == []
    other = zone.key("listen:*", client="other")
    assert zone.hub.call("GET", "/v1/streams/apps/state/a", key=other).status == 200
    assert zone.hub.call("GET", "/v1/streams/apps/events/1", key=other).status == 200


def test_the_state_of_a_key_satisfies_its_type(zone: LiveZone) -> None:
    zone.create_stream("apps", keyed=True, undeclared="refuse")
    schema = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
    assert ask(zone, "PUT", "types/d/app.state", {"schema": schema}).status == 201
    event = {"domain": "d", "type": "app.state", "attributes": {"n": 1}}
    put = ask(zone, "PUT", "streams/apps/state/a", event)
    assert (put.status, put.json["event"]["version"]) == (201, "1")
    wrong = ask(zone, "PUT", "streams/apps/state/a", {**event, "attributes": {"n": "1"}})
    wrong.refused(422, "type_violation")
    other = ask(zone, "PUT", "streams/apps/state/a", {**event, "type": "other"})
    assert other.refused(422, "undeclared_type")["position"] == {"field": "type"}


def test_a_condition_beyond_the_streams_head_is_refused(zone: LiveZone) -> None:
    """After a crash the client's sequence may be of lost events."""
    zone.create_stream("lives", keyed=True)
    event = {"domain": "d", "type": "t", "attributes": {}}
    assert ask(zone, "PUT", "streams/lives/state/r", event).status == 201
    for method, body in (("PUT", event), ("DELETE", None)):
        answer = ask(zone, method, "streams/lives/state/r", body, If_Match="1000000")
        answer.refused(412, "changed")
        assert answer.json["current"] == 1


def test_a_key_with_a_line_end_is_addressed_by_its_path(zone: LiveZone) -> None:
    zone.create_stream("lines", keyed=True)
    event = {"domain": "d", "type": "t", "key": "a\nb/c\n"}
    assert zone.emit("lines", event).status == 200
    path = f"streams/lines/state/{quote(event['key'])}"
    assert ask(zone, "GET", path).json["key"] == event["key"]
    assert ask(zone, "DELETE", path).status == 204
    assert ask(zone, "GET", path).refused(404, "unknown_key")


def test_expired_events_are_no_state(zone: LiveZone) -> None:
    """A listener gets the state in the same way."""
    zone.create_stream("ending", keyed=True)
    events = [
        {"domain": "d", "type": "t", "key": key, "expires_at": f"{year}-01-01T00:00:00Z"}
        for key, year in (("was", 2001), ("is", 2101))
    ]
    assert zone.emit("ending", events).status == 200
    [item] = ask(zone, "GET", "streams/ending/state").json["items"]
    assert item["key"] == "is"
    assert ask(zone, "GET", "streams/ending/state/is").status == 200
    ask(zone, "GET", "streams/ending/state/was").refused(404, "unknown_key")


def test_a_page_continues_only_the_stream_of_the_one_before(zone: LiveZone) -> None:
    for stream, keys in (("here", 3), ("there", 3)):
        zone.create_stream(stream, keyed=True)
        events = [{"domain": "d", "type": "t", "key": str(key)} for key in range(keys)]
        assert zone.emit(stream, events).status == 200
    page = ask(zone, "GET", "streams/here/state?limit=1").json
    other = ask(zone, "GET", "streams/there/state?limit=1").json
    assert ask(zone, "GET", f"streams/here/state?limit=1&after={page['next']}").status == 200
    beyond = page["next"].replace(".3.", ".4.")
    for after in (other["next"], beyond):
        answer = ask(zone, "GET", f"streams/here/state?limit=1&after={after}")
        answer.refused(409, "segment_mismatch")
        assert answer.json["current"] == {**answer.json["current"], **{"first": 1, "last": 3}}
