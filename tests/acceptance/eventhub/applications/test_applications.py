"""States of applications, components and groups, and their events."""

from typing import Any

import pytest

from tests.live import Answer, LiveHub, LiveZone

STREAM = "/v1/streams/eventhub.applications"


def put(zone: LiveZone, name: str, state: str, reason: str = "", *, key: str = "") -> Answer:
    """Report the state of an application."""
    path, body = f"/v1/applications/{name.replace('/', '%2F')}", {"state": state, "reason": reason}
    return zone.hub.call("PUT", path, body, key=key or zone.admin)


def get(zone: LiveZone, path: str) -> Any:
    answer = zone.hub.call("GET", path, key=zone.admin)
    assert answer.status == 200, answer
    return answer.json


def events(zone: LiveZone, after: int = 0) -> list[dict[str, Any]]:
    """Return the events of the zone's states after a sequence."""
    page = get(zone, f"{STREAM}/events?from=oldest&limit=100")
    assert page["cursor"]["sequence"] == page["head"]
    return [one["event"] for one in page["events"] if one["sequence"] > after]


def last(zone: LiveZone) -> int:
    return int(get(zone, STREAM)["last"])


def reported(found: list[dict[str, Any]]) -> list[tuple[str, str, str | None, str]]:
    """Return the type, key, previous state and state of events."""
    return [
        (one["type"], one["key"], one["attributes"].get("previous"), one["attributes"]["state"])
        for one in found
    ]


@pytest.mark.req("SUN-22")
def test_a_change_of_a_state_is_an_event_and_a_wrong_state_is_refused(
    hub: LiveHub, zone: LiveZone
) -> None:
    made = put(zone, "till", "online")
    assert (made.status, made.json["state"], made.json["timeout_s"]) == (201, "online", None)
    changed = put(zone, "till", "degraded", "the printer is slow")
    assert (changed.status, changed.json["state"]) == (200, "degraded")
    assert changed.headers["eventhub-caused"] == "2-2"
    assert put(zone, "till/printer", "faulted").status == 201
    assert put(zone, "till", "sleepy").refused(400, "invalid_field")["position"] == {
        "field": "state"
    }
    [_, second, third] = events(zone)
    assert reported([second, third]) == [
        ("application.state", "till", "online", "degraded"),
        ("application.state", "till/printer", None, "faulted"),
    ]
    attributes = second["attributes"]
    assert (second["domain"], second["source"]) == ("eventhub", "eventhub")
    assert attributes["reason"] == "the printer is slow"
    assert attributes["since"] == changed.json["since"]
    assert third["attributes"]["component"] == "printer"
    assert [one["name"] for one in get(zone, "/v1/applications?state=faulted")["items"]] == [
        "till/printer"
    ]


def test_the_same_state_again_is_a_heartbeat_and_no_event(hub: LiveHub, zone: LiveZone) -> None:
    made = put(zone, "till", "online", "started").json
    again = put(zone, "till", "online", "started").json
    assert again["heartbeat_at"] > made["heartbeat_at"]
    assert {**again, "heartbeat_at": "", "reported_at": ""} == {
        **made,
        "heartbeat_at": "",
        "reported_at": "",
    }
    beat = hub.call("POST", "/v1/applications/till/heartbeat", {}, key=zone.admin)
    assert (beat.status, beat.json["heartbeat_at"] > again["heartbeat_at"]) == (200, True)
    assert last(zone) == 1
    explained = put(zone, "till", "online", "warm").json
    assert (explained["reason"], explained["since"]) == ("warm", made["since"])
    assert reported(events(zone, after=1)) == [("application.state", "till", "online", "online")]
    hub.call("POST", "/v1/applications/none/heartbeat", {}, key=zone.admin).refused(
        404, "unknown_application"
    )


@pytest.mark.req("SUN-23")
def test_a_fault_in_a_group_of_three_is_one_event_of_each(hub: LiveHub, zone: LiveZone) -> None:
    names = ["a", "b", "c"]
    for name in names:
        put(zone, name, "online")
    path = "/v1/application-groups/shop"
    made = hub.call("PUT", path, {"applications": names}, key=zone.admin)
    assert (made.status, made.json["state"], made.json["applications"]) == (201, "online", names)
    before = last(zone)
    put(zone, "b", "faulted")
    assert reported(events(zone, before)) == [
        ("application.state", "b", "online", "faulted"),
        ("application_group.state", "group:shop", "online", "degraded"),
    ]
    for name, state, of_group in (
        *(("a", "degraded", None), ("a", "faulted", None), ("c", "offline", "faulted")),
        *(("a", "offline", None), ("b", "offline", "offline"), ("b", "online", "degraded")),
    ):
        before = last(zone)
        put(zone, name, state)
        found = events(zone, before)
        assert [one["attributes"]["state"] for one in found] == [state, *filter(None, [of_group])]
    # its state follows its members also when these are others
    before = last(zone)
    assert hub.call("PUT", path, {"applications": ["b"]}, key=zone.admin).json["state"] == "online"
    assert hub.call("PUT", path, {"applications": ["b"]}, key=zone.admin).status == 200
    assert hub.call("DELETE", "/v1/applications/b", key=zone.admin).status == 204
    assert hub.call("DELETE", path, key=zone.admin).status == 204
    assert reported(events(zone, before)) == [
        ("application_group.state", "group:shop", "degraded", "online"),
        ("application.deleted", "b", None, "online"),
        ("application_group.state", "group:shop", "online", "offline"),
        ("application_group.deleted", "group:shop", None, "offline"),
    ]
    hub.call("GET", path, key=zone.admin).refused(404, "unknown_application_group")
    unknown = hub.call("PUT", path, {"applications": ["a", "b"]}, key=zone.admin)
    assert unknown.refused(404, "unknown_application")["position"] == {"field": "applications.1"}


@pytest.mark.req("SUN-24")
def test_monitoring_that_starts_or_stops_is_an_event_with_the_whole_state(
    hub: LiveHub, zone: LiveZone
) -> None:
    put(zone, "till", "degraded", "slow")
    path = "/v1/applications/till/monitor"
    for timeout_s in (3600, 3600, 60):
        answer = hub.call("PUT", path, {"timeout_s": timeout_s}, key=zone.admin)
        assert (answer.status, answer.json["timeout_s"]) == (200, timeout_s)
    for _ in range(2):
        assert hub.call("DELETE", path, key=zone.admin).status == 204
    found = events(zone, after=1)
    assert [one["type"].rsplit(".", 1)[1] for one in found] == ["started", "changed", "stopped"]
    whole = [(one["attributes"]["reason"], one["attributes"]["monitored"]) for one in found]
    assert whole == [("slow", True), ("slow", True), ("slow", False)]
    for wrong in (4, 8 * 24 * 3600, "60", None):
        refused = hub.call("PUT", path, {"timeout_s": wrong}, key=zone.admin)
        assert refused.refused(400, "invalid_field")["position"] == {"field": "timeout_s"}


def test_the_keyed_state_of_the_stream_is_the_snapshot(hub: LiveHub, zone: LiveZone) -> None:
    put(zone, "a", "online")
    put(zone, "b", "faulted")
    put(zone, "a", "offline")
    put(zone, "c", "online")
    group = {"applications": ["a", "c"]}
    hub.call("PUT", "/v1/application-groups/g", group, key=zone.admin)
    hub.call("DELETE", "/v1/applications/c", key=zone.admin)
    listed = hub.call("GET", "/v1/applications", key=zone.admin)
    state = get(zone, f"{STREAM}/state")
    assert {one["key"]: one["event"]["attributes"]["state"] for one in state["items"]} == {
        **{one["name"]: one["state"] for one in listed.json["items"]},
        "group:g": "offline",
    }
    assert int(listed.headers["eventhub-sequence"]) == state["cursor"]["sequence"] == last(zone)


def test_each_request_needs_its_grant_on_the_stream(hub: LiveHub, zone: LiveZone) -> None:
    put(zone, "till", "online")
    reporter = zone.key("emit:eventhub.applications", client="reporter")
    reader = zone.key("listen:eventhub.applications", client="reader")
    assert put(zone, "till", "faulted", key=reporter).status == 200
    assert hub.call("GET", "/v1/applications", key=reader).status == 200
    put(zone, "till", "online", key=reader).refused(403, "forbidden")
    hub.call("GET", "/v1/applications/till", key=reporter).refused(403, "forbidden")
    for key in (reporter, reader):
        hub.call("DELETE", "/v1/applications/till", key=key).refused(403, "forbidden")
    event = {"domain": "eventhub", "type": "application.state", "key": "till"}
    zone.emit("eventhub.applications", event, key=reporter).refused(403, "forbidden")
    hub.call("PUT", STREAM, {"restate": False}, key=zone.admin).refused(403, "forbidden")


@pytest.mark.parametrize("name", ["a%2Fb%2Fc", "a%2F", "%2Fa", "-a", "a b".replace(" ", "%20")])
def test_a_name_has_one_component_at_most(hub: LiveHub, zone: LiveZone, name: str) -> None:
    answer = hub.call("PUT", f"/v1/applications/{name}", {"state": "online"}, key=zone.admin)
    assert answer.refused(400, "invalid_name")["position"] == {"field": "application"}
