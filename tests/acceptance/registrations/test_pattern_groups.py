"""Pattern groups and patterns as resources of a running hub: what is stored, refused and announced.
The running of patterns is tested in tests/acceptance/delivery.
"""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from eventhub.base import limits
from tests.live import Answer, LiveHub, LiveZone

READY = "{a: A}; {b: B} per $user within 1h"
TEMPORAL = "(event (time ?t1) (user ?u)) (event (time ?t2) (user ?u)) (test (< ?t1 ?t2))"
AGENT = '(on (= type "A")) (notify (event))'


def group(zone: LiveZone, name: str = "alarms", *streams: str, **more: Any) -> dict[str, Any]:
    body = {"name": name, "streams": [*streams] or ["orders"], **more}
    answer = zone.hub.call("POST", "/v1/pattern-groups", body, key=zone.admin)
    assert answer.status == 201, answer
    created: dict[str, Any] = answer.json
    return created


def fields(name: str = "one", text: str = READY, **more: Any) -> dict[str, Any]:
    return {"group": "alarms", "name": name, "language": "ready", "text": text, **more}


def create(zone: LiveZone, body: Any, *, key: str = "") -> Answer:
    return zone.hub.call("POST", "/v1/patterns", body, key=key or zone.admin)


def announced(zone: LiveZone, start: str) -> list[dict[str, Any]]:
    """Return the events about patterns in `system` from a position on. A page ends early where
    events of other zones are many.
    """
    found: list[dict[str, Any]] = []
    while True:
        path = f"/v1/streams/system/events?from={start}&limit=1000"
        page = zone.hub.call("GET", path, key=zone.admin).json
        found += [one["event"] for one in page["events"]]
        start = f"{page['cursor']['segment']}:{page['cursor']['sequence']}"
        if page["cursor"]["sequence"] >= page["head"]:
            return [one for one in found if one["type"].startswith("pattern")]


def now(zone: LiveZone) -> str:
    system = zone.hub.call("GET", "/v1/streams/system", key=zone.admin).json
    return f"{system['segment']['uuid']}:{system['last']}"


@pytest.fixture
def made(zone: LiveZone) -> LiveZone:
    zone.create_stream("orders")
    group(zone)
    return zone


def test_a_group_begins_at_the_heads_of_its_streams(hub: LiveHub, zone: LiveZone) -> None:
    for name in ("orders", "payments", "out"):
        zone.create_stream(name)
    zone.emit("payments", [{"domain": "d", "type": "A"}] * 3)
    created = group(zone, "alarms", "payments", "orders", "payments", output_stream="out")
    assert sorted(created["streams"]) == ["orders", "payments"]
    assert (created["output_stream"], created["patterns"], created["consumed"]) == ("out", 0, 0)
    [row] = hub.sql(
        "SELECT position, sequences FROM pattern_leases WHERE group_id = %s", created["id"]
    )
    assert row == (0, [0, 3])
    path = f"/v1/pattern-groups/{created['id']}"
    assert hub.call("GET", path, key=zone.admin).json == created
    listed = hub.call("GET", "/v1/pattern-groups?name=alarms", key=zone.admin).json
    assert listed["items"] == [created]


def test_the_outputs_of_a_group_need_the_grant_to_emit(hub: LiveHub, zone: LiveZone) -> None:
    for name in ("orders", "out"):
        zone.create_stream(name)
    reader = zone.key("listen:*", "emit:out")
    body = {"name": "g", "streams": ["orders"]}
    refused = hub.call("POST", "/v1/pattern-groups", body, key=reader)
    assert refused.refused(403, "forbidden")["position"] == {"field": "output_stream"}
    allowed = hub.call("POST", "/v1/pattern-groups", {**body, "output_stream": "out"}, key=reader)
    assert allowed.status == 201
    into = hub.call(
        "POST",
        "/v1/patterns",
        {**fields(text="{A} do announce(X, {}) into 'orders'"), "group": "g"},
        key=reader,
    )
    assert into.refused(403, "forbidden")["position"] == {"field": "text"}


def test_patterns_of_a_list_are_created_at_one_barrier_or_none(
    hub: LiveHub, made: LiveZone
) -> None:
    start = now(made)
    bad = create(made, [fields(), fields("two", "{a: A"), fields("three")])
    assert bad.refused(400, "filter_syntax")["position"] == {"index": 1, "field": "text"}
    twice = create(made, [fields(), fields()])
    assert twice.refused(409, "pattern_exists")["position"] == {"index": 1, "field": "name"}
    assert announced(made, start) == []
    items = [
        fields(),
        fields("two", TEMPORAL, language="temporal", recent=True, once=True),
        fields("three", AGENT, language="agent", suspended=True),
    ]
    created = create(made, items).json["items"]
    assert [one["name"] for one in created] == ["one", "two", "three"]
    assert [one["status"] for one in created] == ["running", "running", "suspended"]
    assert [one["recent"] for one in created] == [False, True, False]
    events = announced(made, start)
    assert [one["type"] for one in events] == ["pattern.created"] * 3
    assert len({one["attributes"]["barrier"] for one in events}) == 1
    assert events[0]["attributes"]["by"]["client"] == "tester"
    [[patterns]] = hub.sql("SELECT patterns FROM pattern_groups WHERE name = 'alarms'"
                           " ORDER BY id DESC LIMIT 1")  # fmt: skip
    assert patterns == 3
    listed = hub.call("GET", "/v1/patterns?status=suspended", key=made.admin).json["items"]
    assert [one["name"] for one in listed] == ["three"]
    listed = hub.call("GET", "/v1/patterns?language=ready&group=alarms", key=made.admin).json
    assert [one["name"] for one in listed["items"]] == ["one"]


def test_a_change_is_a_version_from_one_position_on(hub: LiveHub, made: LiveZone) -> None:
    created = create(made, fields()).json
    made.emit("orders", [{"domain": "d", "type": "A"}] * 2)
    path = f"/v1/patterns/{created['id']}"
    same = hub.call("PATCH", path, {"text": READY}, key=made.admin).json
    assert same["version"] == 1
    changed = hub.call("PATCH", path, {"text": "{b: B}", "once": True}, key=made.admin).json
    assert (changed["version"], changed["text"], changed["once"]) == (2, "{b: B}", True)
    rows = hub.sql(
        "SELECT v.number, f.sequences, u.sequences FROM pattern_versions v"
        " JOIN barriers f ON f.id = v.from_barrier LEFT JOIN barriers u ON u.id = v.until_barrier"
        " WHERE pattern_id = %s ORDER BY v.number",
        created["id"],
    )
    assert rows == [(1, [0], [2]), (2, [2], None)]
    stale = hub.call(
        "PATCH", path, {"once": False}, key=made.admin, headers={"If-Match": created["changed"]}
    )
    stale.refused(412, "changed")


def test_of_changes_at_once_that_expect_the_same_version_one_is_made(
    hub: LiveHub, made: LiveZone
) -> None:
    created = create(made, fields())
    path, given = f"/v1/patterns/{created.json['id']}", {"If-Match": created.headers["etag"]}

    def change(number: int, headers: dict[str, str]) -> Answer:
        body = {"text": f"{{a: A{number}}}"}
        return hub.call("PATCH", path, body, key=made.admin, headers=headers)

    with ThreadPoolExecutor(8) as pool:
        answers = [*pool.map(lambda number: change(number, given), range(12))]
        [done] = [one for one in answers if one.status == 200]
        for one in answers:
            if one is not done:
                one.refused(412, "changed")
        others = [*pool.map(lambda number: change(number, {}), range(12, 24))]
    assert done.json["version"] == 2
    assert sorted(one.json["version"] for one in others) == [*range(3, 15)]
    last = max(others, key=lambda one: int(one.json["version"])).json
    assert hub.call("GET", path, key=made.admin).json["text"] == last["text"]


def test_a_pattern_names_streams_and_sessions_of_its_own_tenant_only(
    hub: LiveHub, made: LiveZone
) -> None:
    other = hub.new_zone()
    other.create_stream("theirs")
    announcing = fields(text="{a: A} do announce(X, {}) into 'theirs'")
    refused = create(made, announcing).refused(404, "unknown_stream")
    assert refused["position"] == {"field": "text"}
    body = {"kind": "consumer", "name": "theirs"}
    assert hub.call("POST", "/v1/sessions", body, key=other.admin).status == 201
    notifying = fields(text="{a: A} do notify(a) to 'theirs'")
    assert create(made, notifying).refused(404, "unknown_session")["position"] == {"field": "text"}
    dead = hub.call("POST", "/v1/patterns", {**fields(), "group": "alarms"}, key=other.admin)
    dead.refused(404, "unknown_pattern_group")


def test_suspending_a_group_suspends_its_patterns_but_those_that_have_ended(
    hub: LiveHub, made: LiveZone
) -> None:
    [one, two, three] = create(made, [fields(name) for name in ("a", "b", "c")]).json["items"]
    hub.sql(
        "INSERT INTO pattern_statuses (pattern_id, group_id, version_id, state)"
        " SELECT pattern_id, group_id, id, 'ended' FROM pattern_versions WHERE pattern_id = %s",
        three["id"],
    )
    start = now(made)
    [own] = hub.call("GET", "/v1/pattern-groups?name=alarms", key=made.admin).json["items"]
    path = f"/v1/pattern-groups/{own['id']}"
    for suspended, count in ((True, 2), (True, 2), (False, 0)):
        changed = hub.call("PATCH", path, {"suspended": suspended}, key=made.admin).json
        assert changed["suspended_patterns"] == count
        listed = hub.call("GET", "/v1/patterns", key=made.admin).json["items"]
        word = "suspended" if suspended else "running"
        assert [each["status"] for each in listed] == [word, word, "ended"]
    assert [each["version"] for each in listed] == [3, 3, 1]
    assert [each["attributes"]["suspended"] for each in announced(made, start)] == [True, False]
    assert listed[0]["changed"] > one["changed"]
    assert two["changed"] < listed[1]["changed"]


def test_a_pattern_that_the_hub_suspended_begins_again_when_it_is_resumed(
    hub: LiveHub, made: LiveZone
) -> None:
    created = create(made, fields("agent", AGENT, language="agent")).json
    fault = '{"code": "steps_max", "message": "too many steps", "position": null}'
    hub.sql(
        "INSERT INTO pattern_statuses (pattern_id, group_id, version_id, state, fault, matches)"
        " SELECT pattern_id, group_id, id, 'suspended', %s, 7 FROM pattern_versions"
        " WHERE pattern_id = %s",
        fault,
        created["id"],
    )
    path = f"/v1/patterns/{created['id']}"
    shown = hub.call("GET", path, key=made.admin).json
    assert (shown["status"], shown["fault"]["code"]) == ("suspended", "steps_max")
    resumed = hub.call("PATCH", path, {"suspended": False}, key=made.admin).json
    assert (resumed["status"], resumed["fault"], resumed["version"]) == ("running", None, 2)
    assert resumed["matches"] == 7


def test_the_patterns_of_a_stopped_group_say_so(hub: LiveHub, made: LiveZone) -> None:
    """They were `running`."""
    names = ("runs", "ended", "suspended")
    [runs, ended, suspended] = create(made, [fields(name) for name in names]).json["items"]
    hub.sql(
        "INSERT INTO pattern_statuses (pattern_id, group_id, version_id, state)"
        " SELECT pattern_id, group_id, id, 'ended' FROM pattern_versions WHERE pattern_id = %s",
        ended["id"],
    )
    path = f"/v1/patterns/{suspended['id']}"
    hub.call("PATCH", path, {"suspended": True}, key=made.admin)
    fault = '{"code": "state_unreadable", "message": "damaged"}'
    hub.sql(
        "UPDATE pattern_leases SET fault = %s WHERE group_id ="
        " (SELECT group_id FROM patterns WHERE id = %s)",
        fault,
        runs["id"],
    )
    listed = hub.call("GET", "/v1/patterns", key=made.admin).json["items"]
    assert [one["status"] for one in listed] == ["stopped", "ended", "suspended"]
    assert [one["fault"] for one in listed] == [json.loads(fault), None, None]
    found = hub.call("GET", "/v1/patterns?status=stopped", key=made.admin).json["items"]
    assert [one["id"] for one in found] == [runs["id"]]
    path = f"/v1/patterns/{runs['id']}/waiting"
    waiting = hub.call("GET", path, key=made.admin).json
    assert (waiting["status"], waiting["partitions"]) == ("stopped", [])


def test_a_deleted_group_takes_its_patterns_and_what_was_stored_of_them(
    hub: LiveHub, made: LiveZone
) -> None:
    created = create(made, fields()).json
    [own] = hub.call("GET", "/v1/pattern-groups?name=alarms", key=made.admin).json["items"]
    start = now(made)
    path = f"/v1/pattern-groups/{own['id']}"
    assert hub.call("DELETE", path, key=made.admin).status == 204
    hub.call("GET", path, key=made.admin).refused(404, "unknown_pattern_group")
    hub.call("GET", f"/v1/patterns/{created['id']}", key=made.admin).refused(404, "unknown_pattern")
    create(made, fields()).refused(404, "unknown_pattern_group")
    assert hub.sql("SELECT count(*) FROM pattern_leases WHERE group_id = %s", own["id"]) == [(0,)]
    [event] = announced(made, start)
    assert (event["type"], event["attributes"]["patterns"]) == ("pattern_group.deleted", 1)
    assert group(made)["id"] > own["id"]  # its name is free


def test_a_deleted_pattern_frees_its_name_and_its_place(hub: LiveHub, made: LiveZone) -> None:
    first = create(made, fields()).json
    assert hub.call("DELETE", f"/v1/patterns/{first['id']}", key=made.admin).status == 204
    second = create(made, fields()).json
    assert second["id"] > first["id"]
    [own] = hub.call("GET", "/v1/pattern-groups?name=alarms", key=made.admin).json["items"]
    assert own["patterns"] == 1


def test_a_client_ends_with_its_patterns(hub: LiveHub, zone: LiveZone) -> None:
    zone.create_stream("orders")
    key = zone.key("listen:*", "emit:*", client="guest")
    body = {"name": "alarms", "streams": ["orders"]}
    made = hub.call("POST", "/v1/pattern-groups", body, key=key).json
    assert create(zone, fields(), key=key).status == 201
    start = now(zone)
    assert hub.call("DELETE", "/v1/clients/guest", key=zone.admin).status == 204
    [event] = announced(zone, start)
    assert event["type"] == "pattern_group.deleted"
    assert (event["attributes"]["pattern_groups"], event["attributes"]["patterns"]) == (1, 1)
    assert hub.sql("SELECT count(*) FROM pattern_leases WHERE group_id = %s", made["id"]) == [(0,)]


def test_a_quota_of_patterns_is_kept(hub: LiveHub, made: LiveZone) -> None:
    quota = hub.operate("PUT", f"/v1/limits?zone={made.name}&client=tester", {"patterns": 2})
    assert quota.status == 200, quota
    assert create(made, [fields("a"), fields("b")]).status == 201
    refused = create(made, fields("c")).refused(409, "limit_reached")
    assert refused["limit"] == 2
    used = hub.call("GET", "/v1/limits?client=tester", key=made.admin).json
    assert used["client"]["patterns"]["used"] == 2


def test_patterns_that_are_evaluated_for_every_event_have_a_budget(
    hub: LiveHub, made: LiveZone
) -> None:
    slow = "{a: A | " + " or ".join(f"$x{n} != 1" for n in range(40)) + "}"
    checked = create(made, fields("slow", slow))
    assert checked.status == 201, checked
    hub.sql(
        "UPDATE pattern_versions SET cost = %s WHERE pattern_id = %s",
        limits.FILTERS_TRIED_MAX,
        checked.json["id"],
    )
    create(made, fields("more", slow)).refused(409, "patterns_too_costly")
    assert create(made, fields("cheap")).status == 201
