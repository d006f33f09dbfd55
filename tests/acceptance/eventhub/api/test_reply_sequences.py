"""Sequences over REST (EMC-09 to EMC-12): positions of replies, caused events, conditions."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import psycopg
import pytest

from tests.live import Answer, LiveZone

SEQUENCE, SEGMENT = "eventhub-sequence", "eventhub-segment"
CAUSED, ACTION = "eventhub-caused", "eventhub-action"


def ask(zone: LiveZone, method: str, path: str, body: Any = None, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return zone.hub.call(method, f"/v1/{path}", body, key=zone.admin, headers=named)


def event_of(zone: LiveZone, stream: str, sequence: int) -> dict[str, Any]:
    found = ask(zone, "GET", f"streams/{stream}/events/{sequence}")
    assert found.status == 200, found
    event: dict[str, Any] = found.json
    return event


def caused(answer: Answer) -> range:
    first, last = answer.headers[CAUSED].split("-")
    return range(int(first), int(last) + 1)


def resources(zone: LiveZone) -> dict[str, tuple[str, Any]]:
    """Return a path of each kind, and a body that changes what is there."""
    zone.create_stream("orders")
    zone.key("listen:*", client="shop")
    key = zone.key("listen:*", client="shop").split("_")[1]
    [registration] = zone.register({"streams": ["orders"]})
    endpoint = zone.endpoint("http://127.0.0.1:9/hook")
    return {
        "stream": ("streams/orders", ("PUT", {"retain_events": 17})),
        "key": (f"keys/{key}", ("PATCH", {"label": "other"})),
        "registration": (f"registrations/{registration['id']}", ("PATCH", {"type": "other"})),
        "endpoint": (f"endpoints/{endpoint['id']}", ("PATCH", {"description": "other"})),
    }


def cursor(answer: Answer) -> str:
    return f"{answer.headers[SEGMENT]}:{answer.headers[SEQUENCE]}"


def first_after(zone: LiveZone, stream: str, start: str) -> Any:
    """Return the first event that a listener from a cursor receives."""
    page = ask(zone, "GET", f"streams/{stream}/events?from={start}&timeout=10&limit=1")
    assert page.headers["vary"] == "Authorization, Cookie"
    return page.json["events"][0]


@pytest.mark.req("EMC-09")
@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "streams/orders", 200),
        ("GET", "streams", 200),
        ("PUT", "streams/orders", 200),
        ("GET", "streams/absent", 404),
        ("DELETE", "streams/orders/events", 405),
        ("GET", "absent", 404),
        ("POST", "streams/absent/events", 404),
        ("GET", "streams/orders/closure", 200),
    ],
)
def test_a_listener_from_the_sequence_of_a_reply_receives_later_changes_only(
    zone: LiveZone, method: str, path: str, status: int
) -> None:
    zone.create_stream("orders", retain_events=8)
    reply = ask(zone, method, path, {} if method in ("POST", "PUT") else None)
    assert reply.status == status
    [changed] = caused(ask(zone, "PUT", "streams/orders", {"retain_events": 9}))
    later = first_after(zone, "system", cursor(reply))
    assert (later["sequence"], later["event"]["attributes"]["retain_events"]) == (changed, 9)


@pytest.mark.req("EMC-09")
@pytest.mark.parametrize("durability", ["sync", "transient"])
def test_a_repeated_emit_replies_with_the_last_sequence(zone: LiveZone, durability: str) -> None:
    """It replied with the sequence of the event that it repeated."""
    zone.create_stream("orders", durability=durability)
    event = {"domain": "d", "type": "t"}
    first = {**event, "id": {"incarnation": 1, "sequence": 1}}
    zone.emit("orders", first)
    zone.emit("orders", [event] * 4)
    again = zone.emit("orders", first)
    assert [one["sequence"] for one in again.json["duplicates"]] == [1]
    assert again.headers[SEQUENCE] == "5"
    partly = zone.emit("orders", [first, event, first])
    assert (partly.json["ranges"][0]["last"], partly.headers[SEQUENCE]) == (6, "6")
    zone.emit("orders", {**event, "type": "later"})
    for reply, type in ((again, "t"), (partly, "later")):
        later = first_after(zone, "orders", cursor(reply))
        assert later["sequence"] == int(reply.headers[SEQUENCE]) + 1
        assert later["event"]["type"] == type


@pytest.mark.req("EMC-09")
def test_a_reply_and_its_sequence_are_of_one_snapshot(zone: LiveZone) -> None:
    """A reader at sequence N sees exactly the changes announced up to N."""
    zone.create_stream("orders", retain_events=1)
    created = ask(zone, "GET", "streams/orders").json["changed"]

    def change(number: int) -> tuple[int, int]:
        [sequence] = caused(ask(zone, "PUT", "streams/orders", {"retain_events": number}))
        return sequence, number

    with ThreadPoolExecutor(4) as pool:
        changing = pool.map(change, range(2, 42))
        reads = list(pool.map(lambda _: ask(zone, "GET", "streams/orders"), range(80)))
        changes = dict(changing)
    numbers = sorted(changes)
    for read in reads:
        known = int(read.headers[SEQUENCE])
        behind = [number for number in numbers if number <= known]
        shown = changes[behind[-1]] if behind else 1
        assert read.json["retain_events"] == shown
        assert read.json["changed"] == (behind[-1] if behind else created)


@pytest.mark.req("EMC-09")
def test_a_reply_that_has_to_wait_is_still_of_one_moment(zone: LiveZone) -> None:
    """A commit between the reading of its sequence and of its content is not in the reply."""
    zone.create_stream("orders", retain_events=1)
    waiting = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND application_name = 'eventhub django' AND wait_event = 'relation'"
    )
    with psycopg.connect(zone.hub.database_url) as held, ThreadPoolExecutor(1) as pool:
        held.execute("LOCK TABLE streams IN ACCESS EXCLUSIVE MODE")
        reading = pool.submit(ask, zone, "GET", "streams/orders")
        while zone.hub.sql(waiting) == [(0,)]:
            assert not reading.done()
        held.execute(
            "UPDATE streams SET retain_events = 2 WHERE name = 'orders'"
            " AND zone_id = (SELECT id FROM zones WHERE name = %s)",
            (zone.name,),
        )
        held.commit()
        assert reading.result().json["retain_events"] == 1
    assert ask(zone, "GET", "streams/orders").json["retain_events"] == 2


@pytest.mark.req("EMC-10")
def test_a_call_returns_the_numbers_that_it_caused_and_they_carry_its_action(
    zone: LiveZone,
) -> None:
    zone.create_stream("orders")
    answer = zone.hub.call(
        "POST",
        "/v1/registrations",
        [{"streams": ["orders"]}] * 3,
        key=zone.admin,
        headers={"EventHub-Action": "order 66"},
    )
    assert answer.status == 201
    assert answer.headers[ACTION] == "order 66"
    numbers = caused(answer)
    assert len(numbers) == 3
    assert int(answer.headers[SEQUENCE]) == numbers[-1]
    for number, item in zip(numbers, answer.json["items"], strict=True):
        event = event_of(zone, "system", number)
        assert event["correlation"] == "order 66"
        assert event["attributes"]["registration"] == item["id"]
        assert item["changed"] == number


@pytest.mark.req("EMC-10")
def test_a_call_without_an_action_gets_one(zone: LiveZone) -> None:
    first = ask(zone, "PUT", "streams/orders")
    second = ask(zone, "PUT", "streams/bills")
    assert first.headers[ACTION] != second.headers[ACTION]
    [sequence] = caused(second)
    assert event_of(zone, "system", sequence)["correlation"] == second.headers[ACTION]
    nothing = ask(zone, "PUT", "streams/orders")
    assert CAUSED not in nothing.headers  # nothing has changed
    for text in ("", " ", "x" * 201, "ü"):
        refusal = ask(zone, "PUT", "streams/orders", EventHub_Action=text)
        problem = refusal.refused(400, "invalid_field")
        assert problem["position"] == {"field": "EventHub-Action"}


@pytest.mark.req("EMC-10")
def test_a_refused_call_caused_nothing(zone: LiveZone) -> None:
    answer = ask(zone, "POST", "clients", {"name": "tester"}, EventHub_Action="again")
    answer.refused(409, "conflict")
    assert answer.headers[ACTION] == "again"
    assert CAUSED not in answer.headers


@pytest.mark.req("EMC-10", "EMC-11")
def test_put_sequence_30(zone: LiveZone) -> None:
    """Events below 30 came before the PUT, those above after it: what it held is stale then."""
    zone.create_stream("shop", keyed=True)
    zone.emit("shop", [{"domain": "d", "type": "other"}] * 28)
    emitted = zone.emit("shop", {"domain": "d", "type": "r.made", "key": "r"})
    assert emitted.json["ranges"][0]["first"] == 29
    put = ask(zone, "PUT", "streams/shop/state/r", {"domain": "d", "type": "r.set"})
    assert (put.status, put.json["sequence"], put.headers["etag"]) == (200, 30, '"30"')
    assert (put.headers[SEQUENCE], put.headers[CAUSED]) == ("30", "30-30")
    other = zone.key("emit:shop", client="other")
    later = zone.hub.call(
        "PUT", "/v1/streams/shop/state/r", {"domain": "d", "type": "r.set"}, key=other
    )
    assert later.json["sequence"] == 31
    own, theirs = event_of(zone, "shop", 30), event_of(zone, "shop", 31)
    assert own["correlation"] == put.headers[ACTION]
    assert (own["key"], theirs["key"]) == ("r", "r")
    assert (own["source"], theirs["source"]) == ("tester", "other")


@pytest.mark.req("EMC-12")
def test_a_put_with_an_old_sequence_is_refused_with_the_current_one(zone: LiveZone) -> None:
    zone.create_stream("shop", keyed=True)
    zone.emit("shop", [{"domain": "d", "type": "other"}] * 29)
    body = {"domain": "d", "type": "r.set"}
    put = ask(zone, "PUT", "streams/shop/state/r", body, If_None_Match="*")
    assert (put.status, put.json["sequence"]) == (201, 30)
    assert ask(zone, "PUT", "streams/shop/state/r", body).json["sequence"] == 31
    refusal = ask(zone, "PUT", "streams/shop/state/r", body, If_Match="30")
    assert refusal.refused(412, "changed")["current"] == 31
    assert ask(zone, "GET", "streams/shop").json["last"] == 31
    assert ask(zone, "PUT", "streams/shop/state/r", body, If_Match='"31"').status == 200
    ask(zone, "PUT", "streams/shop/state/r", body, If_None_Match="*").refused(412, "changed")


@pytest.mark.req("EMC-12")
@pytest.mark.parametrize("kind", ["stream", "key", "registration", "endpoint"])
def test_a_change_is_refused_when_the_resource_changed_since(zone: LiveZone, kind: str) -> None:
    path, (method, body) = resources(zone)[kind]
    seen = ask(zone, "GET", path)
    changed = seen.json["changed"]
    assert seen.headers["etag"] == f'"{changed}"'
    done = ask(zone, method, path, body, If_Match=f'"{changed}"')
    assert done.status == 200, done
    [sequence] = caused(done)
    assert (done.json["changed"], done.headers["etag"]) == (sequence, f'"{sequence}"')
    before = ask(zone, "GET", path)
    assert before.headers["etag"] == f'"{sequence}"'
    for verb in (method, "DELETE"):
        if (kind, verb) != ("stream", "DELETE"):
            refusal = ask(zone, verb, path, body if verb == method else None, If_Match=str(changed))
            problem = refusal.refused(412, "changed")
            assert (problem["current"], problem.get("version")) == (
                sequence,
                done.json.get("version"),
            )
    assert ask(zone, "GET", path).json == before.json
    listed = ask(zone, "GET", "clients/shop/keys" if kind == "key" else f"{kind}s").json["items"]
    assert sequence in [item["changed"] for item in listed]
    if kind != "stream":  # the sequence of any later reply serves, without another look
        known = before.headers[SEQUENCE]
        assert ask(zone, "DELETE", path, If_Match=known).status in (200, 204)


@pytest.mark.req("EMC-12")
def test_clients_and_channels_take_conditions_too(zone: LiveZone) -> None:
    made = ask(zone, "GET", "clients/tester")
    old = str(made.json["changed"] - 1)
    assert ask(zone, "DELETE", "clients/tester", If_Match=old).refused(412, "changed")[
        "current"
    ] == int(made.json["changed"])
    channel = ask(zone, "PUT", "channels/disk", {"mask": 1})
    assert channel.headers["etag"] == f'"{channel.json["changed"]}"'
    again = ask(zone, "PUT", "channels/disk", {"mask": 1}, If_Match=old)
    again.refused(412, "changed")
    same = ask(zone, "PUT", "channels/disk", {"mask": 1}, If_Match=channel.headers["etag"])
    assert same.status == 200


@pytest.mark.req("EMC-12")
def test_of_concurrent_changes_one_succeeds(zone: LiveZone) -> None:
    """Each names the sequence that it read: all but one are refused, and no change is lost."""
    found = resources(zone)
    for kind, field in (("stream", "hold"), ("endpoint", "description")):
        path, (method, _) = found[kind]
        seen = ask(zone, "GET", path).headers["etag"]
        change = partial(ask, zone, method, path, If_Match=seen)
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(change, ({field: f"by {number}"} for number in range(8))))
        assert sorted(answer.status for answer in answers) == [200] + [412] * 7
        [done] = [answer for answer in answers if answer.status == 200]
        assert ask(zone, "GET", path).json == done.json


@pytest.mark.req("EMC-12")
@pytest.mark.parametrize("text", ["*", "x", "-1", '"1', 'W/"1"', "1, 2", ""])
def test_a_condition_is_one_sequence(zone: LiveZone, text: str) -> None:
    zone.create_stream("orders")
    problem = ask(zone, "PUT", "streams/orders", {}, If_Match=text).refused(400, "invalid_field")
    assert problem["position"] == {"field": "If-Match"}


@pytest.mark.req("EMC-12")
def test_a_sequence_that_the_hub_has_not_reached_is_refused(zone: LiveZone) -> None:
    """Such a sequence belongs to another incarnation of the log."""
    zone.create_stream("orders")
    refusal = ask(zone, "PUT", "streams/orders", {"retain_events": 1}, If_Match=str(10**15))
    refusal.refused(412, "changed")


def test_a_transient_stream_has_a_position(zone: LiveZone) -> None:
    zone.create_stream("cpu", durability="transient")
    emitted = zone.emit("cpu", [{"domain": "d", "type": "t"}] * 3)
    assert emitted.status == 200, emitted
    uuid = emitted.json["ranges"][0]["segment"]
    shown = ask(zone, "GET", "streams/cpu").json
    listed = {one["name"]: one for one in ask(zone, "GET", "streams").json["items"]}
    for found in (shown, listed["cpu"]):
        assert (found["first"], found["last"], found["segment"]["uuid"]) == (1, 3, uuid)
    ask(zone, "GET", "streams/cpu/events/1").refused(404, "unknown_event")
    ask(zone, "GET", "streams/cpu/segments/current").refused(404, "not_found")


@pytest.mark.req("EMC-12")
@pytest.mark.parametrize(
    ("path", "body"),
    [("streams/new", {}), ("channels/new", {"mask": "1"}), ("types/d/new", {"schema": {}})],
)
def test_conditions_on_a_resource_that_does_not_exist(zone: LiveZone, path: str, body: Any) -> None:
    answer = ask(zone, "PUT", path, body, If_Match="1")
    answer.refused(412, "changed")
    assert answer.json["current"] == 0
    made = ask(zone, "PUT", path, body, If_None_Match="*")
    assert made.status == 201
    again = ask(zone, "PUT", path, body, If_None_Match="*")
    again.refused(412, "changed")
    assert again.json["current"] == made.json["changed"]


def test_an_unsupported_condition_is_refused(zone: LiveZone) -> None:
    zone.create_stream("plain")
    event = {"domain": "d", "type": "t"}
    for path, body in (("streams/plain/events", event), ("clients", {"name": "c"})):
        for name in ("If-Match", "If-None-Match"):
            answer = ask(zone, "POST", path, body, **{name.replace("-", "_"): "1"})
            assert answer.refused(400, "invalid_field")["position"] == {"field": name}
    quota = ask(zone, "PUT", "storage", {"quota_bytes": None}, If_Match="1")
    assert quota.refused(400, "invalid_field")["position"] == {"field": "If-Match"}
    assert ask(zone, "GET", "streams/plain").json["last"] == 0
