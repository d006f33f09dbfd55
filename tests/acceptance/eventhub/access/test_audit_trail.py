"""The audit trail: who changed what, newest first, in the reader's zone."""

import secrets
from typing import Any
from urllib.parse import quote

import pytest

from eventhub.base import limits
from tests.acceptance.eventhub.api.test_reply_sequences import ask, caused
from tests.live import OPERATOR, Answer, LiveHub, LiveZone


def trail(zone: LiveZone, query: str = "", *, key: str = "") -> list[dict[str, Any]]:
    answer = zone.hub.call("GET", f"/v1/audit?{query}", key=key or zone.admin)
    assert answer.status == 200, answer
    items: list[dict[str, Any]] = answer.json["items"]
    return items


def every_act(zone: LiveZone, query: str) -> list[dict[str, Any]]:
    """Return the acts of all pages: other tests may have written thousands of events."""
    found: list[dict[str, Any]] = []
    after = ""
    while True:
        page = zone.hub.call("GET", f"/v1/audit?{query}{after}", key=zone.admin).json
        found += page["items"]
        if page["next"] is None:
            return found
        after = f"&after={page['next']}"


def names(zone: LiveZone, query: str = "") -> list[tuple[str, str]]:
    return [(item["type"], item["resource"]["name"]) for item in trail(zone, query)]


def put(zone: LiveZone, stream: str, **headers: str) -> Answer:
    answer = ask(zone, "PUT", f"streams/{stream}", **headers)
    assert answer.status == 201, answer
    return answer


def test_an_act_has_its_caller_resource_and_event(zone: LiveZone) -> None:
    answer = put(zone, "orders", X_Request_Id="r-1", EventHub_Action="ticket 7")
    [sequence] = caused(answer)
    [act, *_] = trail(zone)
    assert act["sequence"] == sequence
    assert (act["type"], act["zone"], act["correlation"]) == (
        "stream.created",
        zone.name,
        "ticket 7",
    )
    assert act["resource"] == {"kind": "stream", "name": "orders"}
    assert act["by"] == {
        "kind": "key", "key": zone.admin.split("_")[1], "client": "tester",
        "address": "127.0.0.1", "request_id": "r-1",
    }  # fmt: skip
    assert act["attributes"]["durability"] == "sync"
    assert "by" not in act["attributes"]
    event = ask(zone, "GET", f"streams/system/events/{sequence}").json
    assert act["at"] == event["appended_at"]
    assert ask(zone, "GET", f"audit/{sequence}").json == act


def test_acts_are_filtered_by_caller_action_resource_and_time(zone: LiveZone) -> None:
    put(zone, "first", X_Request_Id="r-1", EventHub_Action="one")
    hub, other = zone.hub, zone.key("manage:*", client="second")
    hub.call("PUT", "/v1/streams/second", {}, key=other)
    assert hub.operate("PUT", f"/v1/streams/third?zone={zone.name}", {}).status == 201
    hub.manage("createkey", "shop", "--zone", zone.name)
    own = zone.admin.split("_")[1]
    made = [("stream.created", name) for name in ("third", "second", "first")]
    expected = {
        "type=stream.created": made,
        "type=stream.*": made,
        "type=stream.": [],
        "resource=stream": made,
        "resource=stream:second": [made[1]],
        "resource=channel": [],
        f"type=stream.*&operator={OPERATOR}": [made[0]],
        "type=stream.*&kind=operator": [made[0]],
        "type=stream.*&client=second": [made[1]],
        f"type=stream.*&key={own}": [made[2]],
        "request_id=r-1": [made[2]],
        "correlation=one": [made[2]],
        "type=stream.*&address=127.0.0.0/8": made,
        "type=stream.*&address=127.0.0.1": made,
        "type=stream.*&address=10.0.0.0/8": [],
        "kind=command&resource=client": [("client.created", "shop")],
        "command=createkey&type=client.*": [("client.created", "shop")],
        "operator=nobody": [],
    }
    assert {query: names(zone, query) for query in expected} == expected
    at = quote(trail(zone, "resource=stream:second")[0]["at"])
    assert names(zone, f"type=stream.*&since={at}") == made[:2]
    assert names(zone, f"type=stream.*&until={at}") == made[1:]
    assert names(zone, f"type=stream.*&since={at}&until={at}") == [made[1]]


def test_the_acts_of_the_hub_itself_are_shown_on_request(zone: LiveZone) -> None:
    assert "hub" not in {act["by"]["kind"] for act in trail(zone, "limit=200")}
    [start, *_] = every_act(zone, "kind=hub&type=hub.started")
    assert (start["by"], start["zone"]) == ({"kind": "hub"}, None)
    assert start["resource"] == {"kind": "hub", "name": ""}


def test_pages_have_every_act_once(zone: LiveZone) -> None:
    for number in range(7):
        put(zone, f"s{number}")
    found: list[str] = []
    after = ""
    while True:
        page = ask(zone, "GET", f"audit?type=stream.*&limit=3{after}").json
        assert len(page["items"]) <= 3
        found += [act["resource"]["name"] for act in page["items"]]
        if page["next"] is None:
            break
        after = f"&after={page['next']}"
    assert found == [f"s{number}" for number in reversed(range(7))]


def test_a_page_examines_a_bounded_number_of_events_and_goes_on(zone: LiveZone) -> None:
    zone.create_stream("oldest")
    lines = b'{"op": "create", "streams": ["oldest"]}\n' * limits.AUDIT_EXAMINED_MAX
    headers = {"Content-Type": "application/x-ndjson"}
    done = zone.hub.call("POST", "/v1/registrations/bulk", lines, key=zone.admin, headers=headers)
    assert b'"done":true' in done.body
    first = ask(zone, "GET", "audit?resource=stream:oldest").json
    assert first["items"] == []
    rest = ask(zone, "GET", f"audit?resource=stream:oldest&after={first['next']}").json
    assert [act["type"] for act in rest["items"]] == ["stream.created"]


def test_a_zone_sees_its_own_acts_and_an_operator_all(hub: LiveHub, zone: LiveZone) -> None:
    other, mark = hub.new_zone(), f"s-{secrets.token_hex(4)}"
    [sequence] = caused(put(other, mark))
    query = f"resource=stream:{mark}"
    assert names(zone, query) == []
    ask(zone, "GET", f"audit/{sequence}").refused(404, "unknown_event")
    ask(zone, "GET", f"audit?zone={other.name}").refused(404, "not_found")
    ask(zone, "GET", "audit?all_zones=true").refused(403, "forbidden")
    assert hub.operate("GET", f"/v1/audit?{query}").json["items"] == []
    found = hub.operate("GET", f"/v1/audit?{query}&all_zones=true").json["items"]
    assert [(act["zone"], act["sequence"]) for act in found] == [(other.name, sequence)]
    assert hub.operate("GET", f"/v1/audit?{query}&zone={other.name}").json["items"] == found


@pytest.mark.parametrize("grants", [["emit:*", "listen:*"], ["manage:orders"]])
def test_the_trail_needs_a_grant_to_manage_system(zone: LiveZone, grants: list[str]) -> None:
    weak = zone.key(*grants)
    zone.hub.call("GET", "/v1/audit", key=weak).refused(403, "forbidden")
    zone.hub.call("GET", "/v1/audit/1", key=weak).refused(403, "forbidden")
    assert trail(zone, key=zone.key("manage:system"))
