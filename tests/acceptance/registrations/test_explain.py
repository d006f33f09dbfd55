"""Explanations: checks and dry runs of drafts, explanations of a filter and of a registration on an
event, and the matches and nearest misses of an event.
"""

import http.client
import json
import time
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.acceptance.eventhub.eventlog.test_archive import archive
from tests.busy import stretched
from tests.live import Answer, LiveHub, LiveZone

JOE = "(and (or (= type 'error) (= type 'warning)) (= user 'Joe))"
SLOW = " ".join(f"(not (wildcard text '*a*b*c*{n}))" for n in range(240))  # of a list of texts
FREE_TIMEOUT_S = 5.0


def post(zone: LiveZone, what: str, key: str = "", /, **body: Any) -> Answer:
    return zone.hub.call("POST", f"/v1/filters/{what}", body, key=key or zone.admin)


def operator_checks(zone: LiveZone, **body: Any) -> Any:
    path = f"/v1/filters/check?zone={zone.name}"
    return zone.hub.operate("POST", path, body).json


def explained(zone: LiveZone, id: int, stream: str, sequence: int, key: str = "") -> Answer:
    path = f"/v1/registrations/{id}/explain?stream={stream}&sequence={sequence}"
    return zone.hub.call("GET", path, key=key or zone.admin)


def matches(zone: LiveZone, stream: str, sequence: int, key: str = "", after: str = "") -> Any:
    more = f"?after={after}" if after else ""
    path = f"/v1/streams/{stream}/events/{sequence}/matches{more}"
    answer = zone.hub.call("GET", path, key=key or zone.admin)
    assert answer.status == 200, answer
    return answer.json


def order(**attributes: Any) -> dict[str, Any]:
    return {"domain": "shop", "type": "order", "attributes": attributes}


def against(answer: Any) -> dict[str, bool]:
    return {one["name"]: one["held"] for one in answer.json["conditions"]}


@pytest.fixture
def orders(zone: LiveZone) -> LiveZone:
    zone.create_stream("orders")
    return zone


def test_a_draft_is_checked_as_on_registering(orders: LiveZone) -> None:
    good = post(orders, "check", language="predicate", filter=JOE, streams=["orders"]).json
    assert good == {
        "language": "predicate",
        "predicate": '(and (or (= type "error") (= type "warning")) (= user "Joe"))',
        "variable": None,
        "ready": None,
        "warnings": [],
        "cost": {
            "reached_by": [{"by": "pair", "names": ["type", "user"]}] * 2,
            "every_event": False,
            "pairs": 4,
            "tests": 0,
            "every_event_cost": 0,
        },
        "signature": ["type", "user"],
        "equal_to": None,
        "mistake": None,
    }
    [made] = orders.register({"streams": ["orders"], "language": "predicate", "filter": JOE})
    other = "(and (= user 'Joe) (or (= type 'warning) (= type 'error)))"
    same = post(orders, "check", language="predicate", filter=other, streams=["orders"]).json
    assert (same["warnings"], same["equal_to"]) == (["equal_to"], made["id"])
    asked = {"language": "predicate", "filter": other, "streams": ["orders"]}
    assert operator_checks(orders, **asked)["equal_to"] is None
    assert operator_checks(orders, **asked, client=made["client"])["equal_to"] == made["id"]
    nobody = operator_checks(orders, **asked, client="nobody")["mistake"]
    assert (nobody["code"], nobody["position"]) == ("not_found", {"field": "client"})

    ready = post(orders, "check", language="ready", filter="Ev1: * | not ($a > 5)").json
    assert (ready["variable"], ready["cost"]["every_event"]) == ("Ev1", True)
    assert post(orders, "check", language="predicate", filter="(or true (= a 1))").json[
        "warnings"
    ] == ["always_matches"]
    assert post(orders, "check", type="order", attributes={"a": 1}).json["predicate"] == (
        '(and (= @type "order") (= a 1))'
    )

    text = "(and (= type 'error)\n  (like user 'Joe))"
    wrong = post(orders, "check", language="predicate", filter=text)
    mistake = wrong.json["mistake"]
    assert (wrong.status, wrong.json["predicate"], wrong.json["cost"]) == (200, None, None)
    assert (mistake["code"], mistake["line"], mistake["column"]) == ("filter_syntax", 2, 4)
    pattern = {"detail": {"state": [{"prefix": 5}]}}
    field = post(orders, "check", language="eventbridge", filter=pattern).json["mistake"]
    assert field["position"]["field"].startswith("filter.detail.state")
    nowhere = post(orders, "check", type="a", streams=["orders", "nowhere"]).json["mistake"]
    assert (nowhere["code"], nowhere["position"]) == ("unknown_stream", {"field": "streams.1"})
    post(orders, "check", surprise=1).refused(400, "unknown_field")


def test_a_draft_is_explained_on_a_given_or_stored_event(orders: LiveZone) -> None:
    orders.define_channel("disk", 3)
    event = order(type="error", user="Ann", tags=["a", "b"])
    made_up = post(orders, "explain", language="predicate", filter=JOE, event=event).json
    assert (made_up["matches"], made_up["held"], made_up["event"]) == (False, False, None)
    either, user = made_up["tree"]["parts"]
    assert (either["held"], either["decides"]) == (True, False)
    assert (user["line"], user["column"], user["decides"]) == (1, 46, True)
    assert user["why"] == 'user is "Ann", expected = "Joe"'
    assert user["evaluated"] == [{"path": "user", "kind": "text", "values": ["Ann"], "more": 0}]

    ranges = orders.emit("orders", {**event, "channels": ["disk"]}).json["ranges"]
    place = {"stream": "orders", "sequence": ranges[0]["first"]}
    stored = post(orders, "explain", attributes={"tags": "b"}, channels=["default"], **place)
    assert (stored.json["held"], stored.json["matches"]) == (True, False)
    assert against(stored) == {"channels": False}
    assert stored.json["conditions"][0]["why"] == "the event is on channel 3, requested: channel 63"
    assert stored.json["event"]["segment"] == ranges[0]["segment"]
    assert stored.headers["eventhub-sequence"] == "1"
    post(orders, "explain", type="a", event={"domain": "d"}).refused(400, "missing_field")
    post(orders, "explain", type="a", stream="orders", sequence=9).refused(404, "unknown_event")
    post(orders, "explain", language="ready", filter="|").refused(400, "filter_syntax")


def test_a_registration_is_explained_by_the_version_that_applied_and_its_conditions(
    orders: LiveZone,
) -> None:
    hub = orders.hub
    group = hub.call("POST", "/v1/registration-groups", {"name": "night"}, key=orders.admin)
    assert group.status == 201, group
    orders.emit("orders", order(total=5))
    [made] = orders.register({"streams": ["orders"], "attributes": {"total": 5}, "group": "night"})
    orders.emit("orders", order(total=5))
    path = f"/v1/registrations/{made['id']}"
    assert hub.call("PATCH", path, {"attributes": {"total": 6}}, key=orders.admin).status == 200
    orders.emit("orders", order(total=5))

    before, held, after = (explained(orders, made["id"], "orders", at) for at in (1, 2, 3))
    assert before.json["registration"]["version"] == 2
    assert (before.json["held"], against(before)["from"]) == (False, False)
    assert held.json["matches"], held.json
    assert held.json["registration"] == {
        **{"id": made["id"], "client": "tester", "version": 1, "current": False},
        **{"endpoint": None, "group": "night", "from": 1, "until": 2},
    }
    assert against(held) == {"from": True, "until": True, "suspended": True, "group": True}
    assert after.json["tree"]["why"] == "total is 5, expected = 6"

    suspend = f"/v1/registration-groups/{group.json['id']}"
    assert hub.call("PATCH", suspend, {"suspended": True}, key=orders.admin).status == 200
    orders.emit("orders", {**order(total=6), "expires_at": "2001-01-01T00:00:00Z"})
    asleep = explained(orders, made["id"], "orders", 4)
    assert asleep.json["held"]
    assert not asleep.json["matches"]
    assert against(asleep) == {
        **{"from": True, "until": True, "suspended": True, "group": False, "expired": False}
    }
    assert explained(orders, made["id"], "orders", 3).json["registration"]["version"] == 2
    assert against(explained(orders, made["id"], "orders", 3))["group"]  # it was awake then
    orders.create_stream("other")
    orders.emit("other", order(total=6))
    explained(orders, made["id"], "other", 1).refused(400, "invalid_field")
    explained(orders, 10**9, "orders", 1).refused(404, "unknown_registration")


@pytest.mark.req("OIF-32")
def test_the_matches_and_nearest_misses_of_an_event_are_for_callers_that_may_see_it(
    orders: LiveZone,
) -> None:
    other = orders.key("listen:*", client="other")
    groups = orders.hub.call("PATCH", "/v1/clients/tester", {"groups": ["ops"]}, key=orders.admin)
    assert groups.status == 200, groups

    def wanting(filter: str) -> dict[str, Any]:
        return {"streams": ["orders"], "language": "predicate", "filter": filter}

    made = orders.register(
        wanting("(and (= type 'error) (= user 'Joe))"),
        wanting("(and (= type 'error) (= user 'Ann))"),
        wanting("(and (= type 'info) (= user 'Ann) (> level 3))"),
        wanting("(and (= type 'info) (= user 'Ann) (> level 8))"),
        wanting("false"),
    )
    joe, ann, far, farther, _ = (one["id"] for one in made)
    [theirs] = orders.register(wanting("(= user 'Joe)"), key=other)
    orders.emit("orders", [order(type="error", user="Joe", level=5)])

    of_zone = matches(orders, "orders", 1)
    assert (of_zone["looked_at"], of_zone["truncated"], of_zone["next"]) == (6, False, None)
    assert [one["id"] for one in of_zone["matches"]] == [joe, theirs["id"]]
    assert [one["id"] for one in of_zone["nearest"]] == [ann, far, farther]
    assert of_zone["nearest"][0]["failed"] == [
        {"predicate": '(= user "Ann")', "why": 'user is "Joe", expected = "Ann"'}
    ]
    assert [len(one["failed"]) for one in of_zone["nearest"]] == [1, 2, 3]
    assert of_zone["nearest"][1]["tests"] == 3
    own = matches(orders, "orders", 1, other)
    assert ([one["id"] for one in own["matches"]], own["nearest"]) == ([theirs["id"]], [])

    narrow = orders.token(grants=[{"action": "listen", "streams": "orders"}])
    assert [one["id"] for one in matches(orders, "orders", 1, narrow)["matches"]] == [joe]
    orders.create_stream("secret")
    [both] = orders.register({"streams": ["orders", "secret"], "attributes": {"user": "Joe"}})
    deaf = orders.key("listen:orders")
    assert (matches(orders, "orders", 1)["looked_at"], of_zone["matched"]) == (7, 2)
    assert matches(orders, "orders", 1, deaf)["looked_at"] == 5

    orders.emit("orders", {**order(user="Joe", type="error"), "audience": ["ops"]})
    hidden = "/v1/streams/orders/events/{}/matches"
    orders.hub.call("GET", hidden.format(2), key=other).refused(404, "unknown_event")
    orders.hub.call("GET", hidden.format(9), key=other).refused(404, "unknown_event")
    seen = matches(orders, "orders", 2)
    assert [one["id"] for one in seen["matches"]] == [joe, both["id"]]
    [mine] = [one for one in seen["nearest"] if one["id"] == theirs["id"]]
    assert (mine["failed"], [one["name"] for one in mine["against"]]) == ([], ["audience"])
    explained(orders, theirs["id"], "orders", 2, other).refused(404, "unknown_event")
    for key, matched in ((other, 1), (orders.admin, 2)):
        found = post(orders, "dry-run", key, stream="orders", attributes={"user": "Joe"})
        assert (found.json["looked_at"], found.json["matched"]) == (matched, matched)


def test_a_draft_is_run_over_the_log_and_the_archive(orders: LiveZone) -> None:
    orders.create_stream("kept", segment_events_max=100, archive=True)
    for first in range(0, 250, 50):
        events = [order(n=n, even=n % 2 == 0) for n in range(first, first + 50)]
        assert orders.emit("kept", events).status == 200
    archive(orders, "kept")
    gone = orders.hub.sql(
        "WITH gone AS (UPDATE segments SET tier = 'archived'"
        " WHERE last IS NOT NULL AND archive_path IS NOT NULL"
        " AND stream_id = (SELECT s.id FROM streams s JOIN zones z ON z.id = s.zone_id"
        " WHERE z.name = %s AND s.name = 'kept') RETURNING uuid, first)"
        " SELECT uuid::text FROM gone ORDER BY first",
        orders.name,
    )
    assert len(gone) == 2

    run = post(orders, "dry-run", stream="kept", attributes={"even": True}, last=240).json
    assert (run["looked_at"], run["matched"], run["stopped"]) == (240, 120, "end")
    assert (run["from"]["sequence"], run["cursor"]["sequence"], run["to"]) == (10, 250, 250)
    series = run["series"]
    assert (sum(series["looked_at"]), sum(series["matched"])) == (240, 120)
    assert len(series["looked_at"]) == len(series["matched"]) <= 240
    samples = run["samples"]
    assert [one["event"]["attributes"]["n"] for one in samples["first"]] == [10, 12, 14]
    assert [one["event"]["attributes"]["n"] for one in samples["last"]] == [244, 246, 248]
    assert run["rate_per_hour"] > 0
    assert run["predicate"] == "(= even true)"

    start = f"{gone[0][0]}:0"
    end = {"to": f"{gone[0][0]}:7"}
    part = post(orders, "dry-run", stream="kept", **{"from": start, **end, "samples": 0}).json
    assert (part["looked_at"], part["matched"], part["samples"]["first"]) == (7, 7, [])
    late = post(orders, "dry-run", stream="kept", **{"from": "2090-01-01T00:00:00Z"}).json
    assert (late["looked_at"], late["rate_per_hour"], late["series"]["begins_at"]) == (
        0,
        None,
        None,
    )
    masked = post(orders, "dry-run", stream="kept", mask="1").json
    assert (masked["looked_at"], masked["matched"]) == (250, 0)

    post(orders, "dry-run", stream="kept", to=start).refused(400, "missing_field")
    post(orders, "dry-run", stream="kept", **{"from": start, "last": 5}).refused(
        400, "invalid_field"
    )
    post(orders, "dry-run", stream="kept", last=0).refused(400, "invalid_field")
    post(orders, "dry-run", type="a").refused(400, "missing_field")
    post(orders, "dry-run", stream="kept", language="ready", filter="|").refused(
        400, "filter_syntax"
    )
    deaf = orders.key("emit:*", client="deaf")
    post(orders, "dry-run", deaf, stream="kept").refused(403, "forbidden")


def test_declared_subtypes_count_as_they_do_in_matching(orders: LiveZone) -> None:
    for name, more in (("order", {}), ("rush", {"parent": "order"})):
        path, body = f"/v1/types/shop/{name}", {"schema": {}, **more}
        assert orders.hub.call("PUT", path, body, key=orders.admin).status == 201
    ready = {"language": "ready", "filter": "shop::order"}
    [made] = orders.register({"streams": ["orders"], **ready})
    assert orders.emit("orders", {**order(), "type": "rush"}).status == 200
    found = post(orders, "explain", **ready, stream="orders", sequence=1).json
    assert found["matches"]
    assert found["tree"]["why"] == (
        "the event is of shop::rush, a subtype of order, expected shop::order"
    )
    assert [one["id"] for one in matches(orders, "orders", 1)["matches"]] == [made["id"]]
    assert post(orders, "dry-run", **ready, stream="orders").json["matched"] == 1


def begin(zone: LiveZone, **body: Any) -> http.client.HTTPConnection:
    """Return a dry run in lines whose answer has started."""
    address = urlsplit(zone.hub.url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)
    headers = {
        "Authorization": f"Bearer {zone.admin}",
        "Accept": "application/x-ndjson",
        "Content-Type": "application/json",
    }
    connection.request("POST", "/v1/filters/dry-run", json.dumps(body), headers)
    return connection


def test_a_long_run_reports_progress_and_ends_when_its_reader_disconnects(orders: LiveZone) -> None:
    for _ in range(4):
        events = [order(text=["a1b2"] * 40)] * 1_000  # 4 ms each: longer than a run may take
        assert orders.emit("orders", events).status == 200
    slow = {"stream": "orders", "language": "predicate", "filter": f"(and {SLOW} (exists none))"}
    running = [begin(orders, **slow) for _ in range(2)]
    answers = [connection.getresponse() for connection in running]
    lines = [json.loads(answer.readline()) for answer in answers]
    assert [line["op"] for line in lines] == ["progress", "progress"]
    assert 0 < lines[0]["looked_at"] < 2_000
    assert lines[0]["matched"] == 0
    busy = post(orders, "dry-run", stream="orders", type="order")
    busy.refused(429, "too_many_requests")
    assert busy.headers["retry-after"] == "1"
    for connection, answer in zip(running, answers, strict=True):
        answer.close()
        connection.close()
    until = time.monotonic() + stretched(FREE_TIMEOUT_S)  # far less than a run
    while post(orders, "dry-run", stream="orders", type="order").status == 429:
        assert time.monotonic() < until
        time.sleep(0.05)

    whole = begin(orders, stream="orders", type="order").getresponse()
    assert whole.headers["content-type"] == "application/x-ndjson"
    *progress, end = [json.loads(line) for line in whole.read().splitlines()]
    assert {line["op"] for line in progress} <= {"progress"}
    assert (end["op"], end["looked_at"], end["matched"]) == ("end", 4_000, 4_000)


def test_an_operator_sees_the_zone_with_the_consoles_token(hub: LiveHub, orders: LiveZone) -> None:
    orders.register({"streams": ["orders"], "attributes": {"a": 1}})
    orders.emit("orders", {**order(a=1), "destinations": ["somebody"]})
    minted = hub.operate("POST", f"/v1/connection-tokens?zone={orders.name}", {})
    token = minted.json["token"]
    [near] = matches(orders, "orders", 1, token)["nearest"]
    assert [one["name"] for one in near["against"]] == ["destinations"]
    assert post(orders, "dry-run", token, stream="orders").json["matched"] == 1
    body = {"attributes": {"a": 1}, "stream": "orders", "sequence": 1}
    explained = hub.operate("POST", f"/v1/filters/explain?zone={orders.name}", body)
    assert explained.json["matches"]
    checked = hub.operate("POST", f"/v1/filters/check?zone={orders.name}", {"type": "a"})
    assert checked.json["predicate"] == '(= @type "a")'


@pytest.mark.req("OIF-30")
def test_the_strategies_are_timed_on_the_same_work_and_find_the_same(hub: LiveHub) -> None:
    words = ("--filters", "150", "--events", "40", "--seconds", "0.01")
    for table in hub.manage("match_table", *words).strip().split("\n\n"):
        head, titles, *rows = table.splitlines()
        assert "equal for all strategies" in head
        assert titles.split()[:2] == ["strategy", "events/s"]
        timed = {row.split()[0]: float(row.split()[1].replace(",", "")) for row in rows}
        assert timed.keys() >= {"scan", "sig", "memo", "lattice", "compile", "access", "counting"}
        assert all(figure > 0 for figure in timed.values())
