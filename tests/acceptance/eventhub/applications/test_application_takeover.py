"""States of applications when processes of the hub are killed or start again."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.live import LiveHub, LiveZone, live_hub

STREAM = "/v1/streams/eventhub.applications"
TIMEOUT_S = 5


@pytest.fixture(scope="module")
def own_hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHub]:
    """Run a hub whose processes are killed."""
    with live_hub(tmp_path_factory.mktemp("takeover")) as running:
        yield running


@pytest.fixture
def shop(own_hub: LiveHub) -> LiveZone:
    return own_hub.new_zone()


def ask(zone: LiveZone, web: int, method: str, path: str, body: Any = None) -> Any:
    answer = zone.hub.call(method, path, body, key=zone.admin, url=zone.hub.web[web].url)
    assert answer.status in (200, 201), answer
    return answer.json


def events(zone: LiveZone, web: int) -> list[dict[str, Any]]:
    page = ask(zone, web, "GET", f"{STREAM}/events?from=oldest&limit=100")
    return [one["event"] for one in page["events"]]


def silence(zone: LiveZone) -> None:
    """Let the last heartbeats of the zone be of long ago."""
    zone.hub.sql(
        "UPDATE applications SET heartbeat_at = now() - interval '1 hour', due_at = now()"
        " WHERE due_at IS NOT NULL AND zone_id = (SELECT id FROM zones WHERE name = %s)",
        zone.name,
    )


def until_offline(zone: LiveZone, web: int) -> dict[str, Any]:
    until = time.monotonic() + 60
    while True:
        found: dict[str, Any] = ask(zone, web, "GET", "/v1/applications/till")
        if found["state"] == "offline":
            return found
        assert time.monotonic() < until, found
        time.sleep(0.1)


@pytest.mark.req("SUN-27")
def test_a_new_leader_reports_a_degraded_application_without_a_new_event(shop: LiveZone) -> None:
    hub = shop.hub
    hub.start_callbacks()
    ask(shop, 0, "PUT", "/v1/applications/till", {"state": "degraded", "reason": "slow"})
    hub.forwarders[0].kill()
    hub.web[0].kill()
    try:
        found = ask(shop, 1, "GET", "/v1/applications/till")
        assert (found["state"], found["reason"]) == ("degraded", "slow")
        state = ask(shop, 1, "GET", f"{STREAM}/state")
        assert [one["event"]["attributes"]["state"] for one in state["items"]] == ["degraded"]
        assert ask(shop, 1, "GET", STREAM)["last"] == 1
    finally:
        hub.forwarders[0].start()
        hub.web[0].start()


@pytest.mark.parametrize("killed", [0, 1])
def test_a_missed_heartbeat_is_noticed_once_also_after_the_leader_was_killed(
    shop: LiveZone, killed: int
) -> None:
    """Each of the two processes is killed in turn, so one of them led."""
    web, path = 1 - killed, "/v1/applications/till"
    ask(shop, web, "PUT", path, {"state": "degraded"})
    ask(shop, web, "PUT", "/v1/application-groups/g", {"applications": ["till"]})
    ask(shop, web, "PUT", f"{path}/monitor", {"timeout_s": TIMEOUT_S})
    shop.hub.web[killed].kill()
    try:
        silence(shop)
        found = until_offline(shop, web)
        assert (found["reason"], found["reported_state"]) == ("heartbeat missed", "degraded")
        ask(shop, web, "POST", f"{path}/heartbeat", {})
        assert ask(shop, web, "GET", path)["state"] == "degraded"
        silence(shop)
        until_offline(shop, web)
    finally:
        shop.hub.web[killed].start()
    reported = [(one["key"], one["attributes"]["state"]) for one in events(shop, web)[3:]]
    missed = [("till", "offline"), ("group:g", "offline")]
    restored = [("till", "degraded"), ("group:g", "degraded")]
    assert reported == [*missed, *restored, *missed]


def test_a_start_of_the_hub_announces_all_states_again_with_its_reason(shop: LiveZone) -> None:
    ask(shop, 0, "PUT", "/v1/applications/till", {"state": "degraded"})
    ask(shop, 0, "PUT", "/v1/applications/till", {"state": "faulted"})
    ask(shop, 0, "PUT", "/v1/application-groups/g", {"applications": ["till"]})
    before = len(events(shop, 0))
    shop.hub.manage("boot", "-v", "0")
    marker, *again = events(shop, 0)[before:]
    assert marker["type"] == "hub.started"
    assert {one["key"]: one["attributes"]["state"] for one in again} == {
        "till": "faulted",
        "group:g": "faulted",
    }
    assert all(one["environment"]["reason"] == "restart" for one in again)
