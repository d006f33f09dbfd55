"""Pattern groups on a running hub, from what they may see to who reads their outputs: over a
websocket with resume, hidden events, announcements, and the end of a stream.
"""

import threading
from typing import Any

import psycopg
import pytest

from tests.acceptance.eventhub.access.test_audience import put_into
from tests.acceptance.eventhub.eventlog.test_retention import wait_for
from tests.acceptance.pattern_cases import outputs_in, post, run_to_end
from tests.acceptance.registrations.test_pattern_groups import announced, now
from tests.acceptance.wire import session
from tests.live import LiveHub, LiveZone

_LAST = "{last: test::last}"


@pytest.fixture
def made(hub: LiveHub, zone: LiveZone) -> LiveZone:
    """Return a zone with a group over `in` whose outputs go to `out`."""
    hub.start_callbacks()
    for name in ("in", "out"):
        zone.create_stream(name)
    post(zone, "/v1/pattern-groups", {"name": "g", "streams": ["in"], "output_stream": "out"})
    pattern(zone, "last", _LAST)
    return zone


def pattern(zone: LiveZone, name: str, text: str, language: str = "ready", **more: Any) -> Any:
    body = {"group": "g", "name": name, "language": language, "text": text, **more}
    return post(zone, "/v1/patterns", body)


def typed(type: str, **more: Any) -> dict[str, Any]:
    return {"domain": "t", "type": type, **more}


def bound(outputs: list[dict[str, Any]], name: str) -> list[list[int]]:
    """Return the sequences that each match of a pattern has bound."""
    return [
        [one["sequence"] for values in event["attributes"]["bindings"].values() for one in values]
        for event in outputs
        if event["attributes"].get("name") == name
    ]


# --- outputs over a websocket ---


async def test_a_listener_of_outputs_resumes_without_loss_while_the_forwarder_restarts(
    hub: LiveHub, made: LiveZone
) -> None:
    pattern(made, "pair", "{a: t::A}; {b: t::B}")
    other = made.key("listen:*", client="other")
    found: list[dict[str, Any]] = []
    async with session(hub, made.admin) as owner, session(hub, other, web=1) as stranger:
        await stranger.listen("out", start="oldest")
        await owner.listen("out", start="oldest")
        made.emit("in", [typed(type) for type in "ABAB"])
        found += await owner.events(2)
        assert await stranger.nothing_waits()
    for process in hub.forwarders:
        process.stop()
    made.emit("in", [typed(type) for type in "AB"])
    hub.start_callbacks()
    last = found[-1]
    cursor = {"segment": last["segment"], "sequence": last["sequence"]}
    async with session(hub, made.admin, web=1) as owner:
        await owner.listen("out", start=cursor)
        made.emit("in", [typed("A"), typed("B"), {"domain": "test", "type": "last"}])
        found += await owner.events(3)
    events = [one["event"] for one in found]
    assert [one["type"] for one in events] == ["pattern.matched"] * 5
    assert bound(events, "pair") == [[1, 2], [3, 4], [5, 6], [7, 8]]
    assert bound(events, "last") == [[9]]
    assert [one["sequence"] for one in found] == [1, 2, 3, 4, 5]


# --- what a group sees ---


@pytest.mark.req("OIF-32")
def test_an_event_that_the_owner_may_not_see_does_not_exist_for_its_patterns(
    made: LiveZone,
) -> None:
    pattern(made, "two", "{v[2..2]: t::A}")
    pattern(made, "unless", "({a: t::A} butnot {b: t::B}); {c: t::C}")
    pattern(made, "near", "{a: t::A}; {c: t::C} last 2")
    pattern(
        made,
        "memory",
        "(event (n ?n) (where (= @type 'A))) (event (n ?m) (where (= @type 'C))) (memory 3)",
        "temporal",
    )
    agent = "(on (= @type 'C)) (announce 'seen (object 'n (length (recent 10 (= @domain 't)))))"
    pattern(made, "agent", agent, "agent")
    ops, other = {"audience": ["ops"]}, {"destinations": ["other"]}
    given = [
        typed("B", **ops),
        typed("A", attributes={"n": 1}),
        typed("A", attributes={"n": 1}, **ops),
        typed("B", **other),
        typed("C", attributes={"n": 1}),
    ]
    made.emit("in", given)
    outputs = run_to_end(made, "out")
    assert bound(outputs, "two") == []
    assert bound(outputs, "unless") == [[2, 5]]
    assert bound(outputs, "near") == [[2, 5]]
    assert bound(outputs, "memory") == [[2, 5]]
    assert [one["attributes"] for one in outputs if one["type"] == "seen"] == [{"n": 2}]
    put_into(made, "tester", "ops")
    made.emit("in", given[2])
    wait_for(lambda: bound(outputs_in(made, "out"), "two") == [[2, 7]], "an event for its group")


def test_a_group_sees_no_event_of_another_tenant(hub: LiveHub, made: LiveZone) -> None:
    other = hub.new_zone()
    other.create_stream("in")
    body = {"name": "hub", "streams": ["system"], "output_stream": "out"}
    post(made, "/v1/pattern-groups", body)
    text = "{s: eventhub::stream.created} do announce(t::seen, {stream = s.stream})"
    post(made, "/v1/patterns", {"group": "hub", "name": "s", "language": "ready", "text": text})
    pattern(made, "a", "{a: t::A}")
    other.create_stream("theirs")
    other.emit("in", typed("A"))
    made.create_stream("ours")
    wait_for(lambda: len(outputs_in(made, "out")) > 0, "the stream of this zone")
    seen = [one for one in run_to_end(made, "out") if one["type"] == "seen"]
    assert [one["attributes"] for one in seen] == [{"stream": "ours"}]
    assert bound(outputs_in(made, "out"), "a") == []


# --- the end of patterns ---


def attributes_of(zone: LiveZone, start: str, type: str) -> list[dict[str, Any]]:
    found = [one["attributes"] for one in announced(zone, start) if one["type"] == type]
    return [{name: value for name, value in one.items() if name != "by"} for one in found]


def shown(zone: LiveZone, id: int) -> Any:
    return zone.hub.call("GET", f"/v1/patterns/{id}", key=zone.admin).json


def test_dropped_outputs_are_announced_first_and_whenever_they_have_doubled(
    hub: LiveHub, made: LiveZone
) -> None:
    start = now(made)
    made_one = pattern(made, "stops", "{a: t::A} do announce(t::X, {n = 1}) into 'in'")
    id = made_one["id"]
    last_hop = typed("A", environment={"eventhub.hop_limit": "1"})
    made.emit("in", [last_hop] * 9)
    wait_for(lambda: shown(made, id)["dropped"] == {"hop_limit": 9}, "nine dropped outputs")
    for process in hub.forwarders:
        process.stop()
    hub.start_callbacks()
    made.emit("in", [last_hop] * 8)
    wait_for(lambda: shown(made, id)["dropped"] == {"hop_limit": 17}, "seventeen")
    found = attributes_of(made, start, "pattern.dropped")
    assert [one["count"] for one in found] == [1, 2, 4, 8, 16]
    [group] = hub.call("GET", "/v1/pattern-groups", key=made.admin).json["items"]
    assert found[0] == {
        "client": "tester", "pattern_group": group["id"], "pattern": id, "name": "stops",
        "version": 1, "reason": "hop_limit", "count": 1, "zone": made.name,
    }  # fmt: skip


@pytest.mark.req("OIF-23")
def test_failed_runs_are_announced_as_often_and_then_the_suspension(made: LiveZone) -> None:
    start = now(made)
    text = "(on (= @domain 't))\n  (+ 1 (field (event) 'word))"
    id = pattern(made, "wrong", text, "agent")["id"]
    made.emit("in", [typed("A", attributes={"word": "x"})] * 12)
    wait_for(lambda: shown(made, id)["status"] == "suspended", "the suspension")
    failed = attributes_of(made, start, "pattern.failed")
    assert [one["runs"] for one in failed] == [1, 2, 4, 8]
    first = failed[0]
    assert (first["pattern"], first["name"], first["version"]) == (id, "wrong", 1)
    assert (first["code"], first["line"], first["column"]) == ("wrong_type", 2, 4)
    assert (first["event"]["stream"], first["event"]["sequence"]) == ("in", 1)
    assert first["message"]
    [suspended] = attributes_of(made, start, "pattern.suspended")
    assert (suspended["pattern"], suspended["event"]["sequence"]) == (id, 10)
    assert suspended["code"] == shown(made, id)["fault"]["code"]


def test_the_end_of_a_pattern_that_was_to_match_once_is_announced_once(made: LiveZone) -> None:
    start = now(made)
    id = pattern(made, "first", "{a: t::A}", once=True)["id"]
    made.emit("in", [typed("A")] * 3)
    assert bound(run_to_end(made, "out"), "first") == [[1]]
    assert (shown(made, id)["status"], shown(made, id)["matches"]) == ("ended", 1)
    [ended] = attributes_of(made, start, "pattern.ended")
    assert (ended["pattern"], ended["name"], ended["version"]) == (id, "first", 1)
    assert ended["client"] == "tester"


# --- the end of a stream ---

_TABLES = ("pattern_leases", "pattern_states", "pattern_journal", "pattern_statuses")


def rows_of(hub: LiveHub, group: int) -> dict[str, int]:
    return {
        name: hub.sql(f"SELECT count(*) FROM {name} WHERE group_id = %s", group)[0][0]
        for name in _TABLES
    }


def test_a_group_ends_with_each_of_its_streams(hub: LiveHub, made: LiveZone) -> None:
    start = now(made)
    for name in ("more", "into"):
        made.create_stream(name)
    body = {"name": "both", "streams": ["in", "more"], "output_stream": "out"}
    both = post(made, "/v1/pattern-groups", body)
    body = {"name": "writes", "streams": ["in"], "output_stream": "into"}
    writes = post(made, "/v1/pattern-groups", body)
    fields = {"name": "p", "language": "ready", "text": "{a: t::A}"}
    patterns = [
        post(made, "/v1/patterns", {"group": group, **fields}) for group in ("g", "both", "writes")
    ]
    made.emit("in", typed("A"))
    made.emit("more", typed("A"))
    wait_for(lambda: len(outputs_in(made, "out")) == 3, "the matches of both groups")
    for ended, stream in ((both, "more"), (writes, "into")):
        path = f"/v1/pattern-groups/{ended['id']}"
        assert hub.call("GET", path, key=made.admin).status == 200
        deleted = hub.call("DELETE", f"/v1/streams/{stream}?grace_s=0", key=made.admin)
        assert deleted.status == 202, deleted
        wait_for(lambda: hub.call("GET", path, key=made.admin).status == 404, "its end")  # noqa: B023
        hub.call("GET", path, key=made.admin).refused(404, "unknown_pattern_group")
        wait_for(lambda: rows_of(hub, ended["id"]) == dict.fromkeys(_TABLES, 0), "no rows")  # noqa: B023
    for one in patterns[1:]:
        path = f"/v1/patterns/{one['id']}"
        hub.call("GET", path, key=made.admin).refused(404, "unknown_pattern")
        hub.call("GET", f"{path}/waiting", key=made.admin).refused(404, "unknown_pattern")
    ends = attributes_of(made, start, "pattern_group.deleted")
    assert [(one["name"], one["patterns"]) for one in ends] == [("both", 1), ("writes", 1)]
    before = len(outputs_in(made, "out"))
    made.emit("in", typed("A"))
    run_to_end(made, "out")
    assert len(outputs_in(made, "out")) == before + 2
    assert outputs_in(made, "out")[before]["attributes"]["pattern"] == patterns[0]["id"]


def test_a_deletion_waits_for_a_checkpoint_under_way(hub: LiveHub, made: LiveZone) -> None:
    """The statement of the deletion does not see what the checkpoint wrote, unless it waits."""
    [group] = hub.call("GET", "/v1/pattern-groups", key=made.admin).json["items"]
    answers: list[int] = []

    def delete() -> None:
        path = f"/v1/pattern-groups/{group['id']}"
        answers.append(hub.call("DELETE", path, key=made.admin).status)

    for process in hub.forwarders:
        process.stop()
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE %s = ANY (pg_blocking_pids(pid))"
    with psycopg.connect(hub.database_url) as checkpoint:
        own = checkpoint.info.backend_pid
        checkpoint.execute(
            "SELECT FROM pattern_leases WHERE group_id = %s FOR NO KEY UPDATE", (group["id"],)
        )
        checkpoint.execute(
            "INSERT INTO pattern_journal (group_id, first, last, streams, segments, firsts, lasts,"
            " added, removed) VALUES (%s, 7, 6, '{}', '{}', '{}', '{}', '{}', '{}')",
            (group["id"],),
        )
        deleting = threading.Thread(target=delete)
        deleting.start()
        wait_for(lambda: hub.sql(waiting, own) == [(1,)], "the deletion to wait")
    deleting.join()
    assert answers == [204]
    assert rows_of(hub, group["id"]) == dict.fromkeys(_TABLES, 0)
