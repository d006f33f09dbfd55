"""The interest in a stream, for producers: its closure, and the check of a shape."""

from random import Random
from typing import Any

import pytest

from eventhub.event.envelope import Event
from registrations.filters.evaluate import holds
from registrations.filters.languages import parse
from tests.acceptance.wire import session, until
from tests.live import Answer, LiveHub, LiveZone

ERROR: dict[str, Any] = {"streams": ["log"], "attributes": {"type": "error"}}
JOE: dict[str, Any] = {"streams": ["log"], "attributes": {"user": "Joe"}}
PREDICATE = {"streams": ["log"], "language": "predicate"}


def ask(zone: LiveZone, query: str = "", *, key: str = "", **headers: str) -> Answer:
    path = f"/v1/streams/log/closure{query}"
    return zone.hub.call("GET", path, key=key or zone.admin, headers=headers)


def closure(zone: LiveZone, query: str = "") -> dict[str, Any]:
    answer = ask(zone, query)
    assert answer.status == 200, answer
    found: dict[str, Any] = answer.json
    return found


def interest(zone: LiveZone, stream: str = "log", **shape: Any) -> str:
    path = f"/v1/streams/{stream}/interest"
    answer = zone.hub.call("POST", path, {"shape": shape}, key=zone.admin)
    assert answer.status == 200, answer
    found: str = answer.json["interested"]
    return found


def put(zone: LiveZone, client: str, groups: list[str]) -> None:
    body = {"groups": groups}
    answer = zone.hub.operate("PATCH", f"/v1/clients/{client}?zone={zone.name}", body)
    assert answer.status == 200, answer


@pytest.mark.req("OIF-07")
def test_the_closure_is_the_union_of_all_filters(zone: LiveZone) -> None:
    zone.create_stream("log")
    zone.create_stream("other")
    assert closure(zone)["filter"] == "false"
    ann = zone.key("listen:*", client="ann")
    zone.register(ERROR)
    zone.register(JOE, key=ann)
    zone.register({"streams": ["other"]})
    found = closure(zone)
    assert found["language"] == "predicate"
    assert not found["widened"]
    assert "ann" not in str(found), "whose interest it is, is nobody's business"
    node = parse(found["language"], found["filter"]).node
    random, matched = Random(7), 0
    for _ in range(1_000):
        names = ("type", "user", "host")
        values = ("error", "Joe", "info", "joe", 1, ["error", "x"], None)
        attributes = {n: random.choice(values) for n in names if random.random() < 0.7}
        event = Event("d", "t", attributes)
        expected = any(
            holds(parse("pairs", {"attributes": one["attributes"]}).node, event)
            for one in (ERROR, JOE)
        )
        assert holds(node, event) == expected, attributes
        matched += expected
    assert 200 < matched < 700


def test_the_closure_is_current_and_leaves_out_covered_filters(zone: LiveZone) -> None:
    zone.create_stream("log")
    zone.create_stream("other")
    [wide, narrow] = zone.register(
        {**PREDICATE, "filter": "(> size 5)"}, {**PREDICATE, "filter": "(and (> size 7) (= a 1))"}
    )
    first = closure(zone)
    assert first["alternatives"] == ["(> size 5)"]
    same = ask(zone, **{"If-None-Match": f'"{first["tag"]}"'})
    assert (same.status, same.body) == (304, b"")
    path = f"/v1/registrations/{wide['id']}"

    def change(fields: dict[str, Any]) -> Answer:
        return zone.hub.call("PATCH", path, fields, key=zone.admin)

    assert change({"streams": ["other"]}).status == 200
    assert closure(zone)["filter"] == "(and (= a 1) (> size 7))"
    assert change({"streams": ["log"], "suspended": True}).status == 200
    assert closure(zone)["filter"] == "(and (= a 1) (> size 7))", "what is suspended wants nothing"
    assert change({"suspended": False}).status == 200
    assert closure(zone) == {**first, "sequence": closure(zone)["sequence"]}
    for made in (wide, narrow):
        gone = zone.hub.call("DELETE", f"/v1/registrations/{made['id']}", key=zone.admin)
        assert gone.status == 204
    assert closure(zone)["filter"] == "false"
    group = zone.hub.call("POST", "/v1/registration-groups", {"name": "people"}, key=zone.admin)
    zone.register({**JOE, "group": "people"})
    assert closure(zone)["filter"] == '(= user "Joe")'
    people = f"/v1/registration-groups/{group.json['id']}"
    suspend = zone.hub.call("PATCH", people, {"suspended": True}, key=zone.admin)
    assert suspend.status == 200, suspend
    assert closure(zone)["filter"] == "false"


def test_a_closure_that_is_too_large_is_widened_and_loses_nothing(zone: LiveZone) -> None:
    zone.create_stream("log")
    many = [
        {"streams": ["log"], "type": f"t{n % 3}", "attributes": {"order": n}} for n in range(900)
    ]
    zone.register(*many)
    found = closure(zone)
    assert (len(found["alternatives"]), found["widened"]) == (3, False), "values in sets"
    assert interest(zone, type="t1", attributes={"order": 4}) == "yes"
    zone.register(
        *({**one, "attributes": {"order": f"{one['attributes']['order']:030}"}} for one in many)
    )
    zone.register(
        *({**one, "type": "t9", "attributes": {"order": f"a{n:099}"}} for n, one in enumerate(many))
    )
    found = closure(zone)
    assert found["widened"]
    assert '(and (<= order 899) (= @type "t2") (>= order 2))' in found["alternatives"]
    assert any("(prefix order " in one for one in found["alternatives"])
    assert interest(zone, type="t1", attributes={"order": 4}) == "maybe"
    assert interest(zone, type="t4", attributes={"order": 1}) == "maybe", "nobody knows who listens"


@pytest.mark.req("OIF-32")
def test_the_closure_is_for_producers_and_counts_only_the_audience(zone: LiveZone) -> None:
    zone.create_stream("log")
    inside, outside = zone.key("listen:*", client="in"), zone.key("listen:*", client="out")
    put(zone, "in", ["ops", "night"])
    zone.register({"streams": ["log"], "type": "a"}, key=inside)
    zone.register({"streams": ["log"], "type": "b"}, key=outside)
    assert closure(zone)["alternatives"] == ['(= @type "a")', '(= @type "b")']
    assert closure(zone, "?audience=ops")["alternatives"] == ['(= @type "a")']
    assert closure(zone, "?audience=day,night")["alternatives"] == ['(= @type "a")']
    assert closure(zone, "?audience=day")["alternatives"] == []
    put(zone, "out", ["day"])
    assert closure(zone, "?audience=day")["alternatives"] == ['(= @type "b")']
    for key in (inside, outside):
        ask(zone, key=key).refused(403, "forbidden")
        ask(zone, "?audience=ops", key=key).refused(403, "forbidden")
        body = {"shape": {"type": "a"}, "audience": ["ops"]}
        path = "/v1/streams/log/interest"
        zone.hub.call("POST", path, body, key=key).refused(403, "forbidden")
    assert ask(zone, key=zone.key("emit:log", client="in")).status == 200
    assert ask(zone, key=zone.key("manage:log", client="in")).status == 200
    system = zone.hub.call("GET", "/v1/streams/system/closure", key=zone.admin)
    system.refused(403, "forbidden")


async def test_the_closure_of_a_stream_with_quench_includes_listeners(
    hub: LiveHub, zone: LiveZone
) -> None:
    """The closure includes it from before it starts until some time after its end, over any
    transport and process; the policy takes effect once all existing listeners are recorded.
    """
    zone.create_stream("log", quench=True)
    zone.create_stream("kept")
    zone.register({**PREDICATE, "filter": "(= @type 'error)"})
    found = closure(zone)
    assert found["quench"]
    assert interest(zone, type="debug.x") == "no"
    assert interest(zone, type="error") == "yes"
    assert interest(zone, "kept", type="debug.x") == "maybe"
    async with session(hub, zone.admin, web=1) as reader:
        await reader.listen("log", type="debug.x")
        assert interest(zone, type="debug.x") == "yes"
        assert interest(zone, type="debug.y") == "no"
        await reader.listen("kept", name="b")
    assert interest(zone, type="debug.x") == "yes", "it may come back for what it missed"
    query = "/v1/streams/log/events?timeout=0&language=predicate&filter=(prefix+@type+'trace.)"
    assert hub.call("GET", query, key=zone.admin).status == 200
    assert interest(zone, type="trace.a") == "yes"
    hub.sql("UPDATE listen_interests SET expires_at = now() - interval '1 second'")
    assert closure(zone)["filter"] == '(= @type "error")'
    async with session(hub, zone.admin) as reader:
        await reader.listen("kept")
        changed = hub.call("PUT", "/v1/streams/kept", {"quench": True}, key=zone.admin)
        assert changed.status == 200, changed
        assert interest(zone, "kept", type="debug.x") == "maybe"
        age = "UPDATE streams SET unquenched_at = now() - interval '61 seconds' WHERE quench"
        said = "SELECT 1 FROM listen_interests WHERE filter = 'true' AND expires_at > now()"
        await until(lambda: bool(hub.sql(said)))
        hub.sql(age)
        assert interest(zone, "kept", type="debug.x") == "yes", "it began before the policy"
    keyed = hub.call("PUT", "/v1/streams/state", {"keyed": True, "quench": True}, key=zone.admin)
    assert keyed.refused(400, "invalid_field")["position"] == {"field": "quench"}
