"""Registrations (SUN-02, SUN-28, OIF-05): their fields, owner and lifecycle."""

from typing import Any

import pytest

from tests.acceptance.wire import session
from tests.live import LiveHub, LiveZone

PAIRS = {"resource group name": "foo", "node": "node", "state": "online"}
CLASS = {"domain": "cluster", "type": "resource group state"}
WANTED = {"streams": ["cluster"], **CLASS, "attributes": PAIRS}
CALLBACK = "https://forwarder.example:8443/events?client=1"


@pytest.fixture
def cluster(zone: LiveZone) -> LiveZone:
    zone.create_stream("cluster")
    return zone


@pytest.mark.req("SUN-02")
def test_a_registration_has_client_class_pairs_callback_and_total(
    hub: LiveHub, cluster: LiveZone
) -> None:
    key = cluster.key("listen:cluster", client="monitor")
    made = hub.call("POST", "/v1/registrations", {**WANTED, "callback": CALLBACK}, key=key)
    assert made.status == 201, made
    secret = made.json["secret"]
    assert secret.startswith("whsec_")
    for url in (hub.web[0].url, hub.web[1].url):
        shown = hub.call("GET", f"/v1/registrations/{made.json['id']}", key=key, url=url).json
        assert shown["client"] == "monitor"
        assert (shown["domain"], shown["type"]) == ("cluster", "resource group state")
        assert shown["attributes"] == PAIRS
        assert shown["callback"] == CALLBACK
        assert shown["pair_count"] == 3
        assert {**shown, "secret": secret} == made.json
    [endpoint] = hub.call("GET", "/v1/endpoints", key=key).json["items"]
    assert (endpoint["id"], endpoint["url"]) == (made.json["endpoint"], CALLBACK)


@pytest.mark.req("SUN-02")
def test_a_target_set_may_be_empty_and_class_and_subclass_open(
    hub: LiveHub, cluster: LiveZone
) -> None:
    [made] = cluster.register({"streams": ["cluster"]})
    assert (made["domain"], made["type"], made["attributes"]) == (None, None, {})
    assert (made["pair_count"], made["callback"]) == (0, None)


@pytest.mark.req("SUN-28")
@pytest.mark.parametrize("node", [0, 1])
def test_the_loss_of_one_node_loses_no_registration(
    hub: LiveHub, cluster: LiveZone, node: int
) -> None:
    """A node runs a web process, a forwarder and a worker. The registrations are created and
    changed at the node that is lost.
    """
    lost, other = hub.web[node], hub.web[1 - node]
    definitions = [
        *({**WANTED, "attributes": {"n": n}, "callback": CALLBACK} for n in range(5)),
        {"streams": ["cluster", "system"], "type": "key.revoked"},
    ]
    made = hub.call("POST", "/v1/registrations", definitions, key=cluster.admin, url=lost.url)
    ids = [item["id"] for item in made.json["items"]]
    path = f"/v1/registrations/{ids[2]}"
    changed = hub.call("PATCH", path, {"type": None}, key=cluster.admin, url=lost.url)
    assert changed.status == 200

    def listed(url: str) -> Any:
        return hub.call("GET", "/v1/registrations", key=cluster.admin, url=url).json

    before = listed(lost.url)
    assert [item["id"] for item in before["items"]] == ids
    processes = [
        lost,
        *(each[node] for each in (hub.forwarders, hub.workers) if each[node].running),
    ]
    for process in processes:
        process.kill()
    try:
        assert listed(other.url) == before
    finally:
        for process in processes:
            process.start()
    assert listed(lost.url) == before


@pytest.mark.req("OIF-05")
async def test_a_registration_changes_at_one_position_and_ends_by_its_id(
    hub: LiveHub, cluster: LiveZone
) -> None:
    """Events go on all the while: each is matched by the old pattern or by the new, never by both
    or none.
    """
    [made] = cluster.register({"streams": ["cluster"], "attributes": {"state": "online"}})
    path = f"/v1/registrations/{made['id']}"
    both = [{**CLASS, "attributes": {"state": state}} for state in ("online", "offline")]
    async with session(hub, cluster.admin, web=1) as reader:
        await reader.listen("cluster", registrations=[made["id"]])
        for _ in range(3):
            cluster.emit("cluster", both)
        changed = hub.call("PATCH", path, {"attributes": {"state": "offline"}}, key=cluster.admin)
        assert changed.status == 200
        assert (changed.json["version"], changed.json["id"]) == (2, made["id"])
        for _ in range(3):
            cluster.emit("cluster", both)
        events = await reader.events(6)
        place = changed.json["from"]["cluster"]["sequence"]
        got = [(event["sequence"], event["event"]["attributes"]["state"]) for event in events]
        expected = [(n, "online") for n in (1, 3, 5)] + [(n, "offline") for n in (8, 10, 12)]
        assert (place, got) == (6, expected)
        assert hub.call("DELETE", path, key=cluster.admin).status == 204
        cluster.emit("cluster", both)
        await reader.say("ping", id="probe")
        while (said := await reader.hear())["op"] != "pong":  # the listen may end before or after
            assert (said["op"], said["code"]) == ("error", "unknown_registration"), said
    for method in ("GET", "PATCH", "DELETE"):
        answer = hub.call(method, path, {} if method == "PATCH" else None, key=cluster.admin)
        answer.refused(404, "unknown_registration")


@pytest.mark.req("OIF-05")
@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
def test_another_clients_registration_is_not_found(
    hub: LiveHub, cluster: LiveZone, method: str
) -> None:
    [made] = cluster.register(WANTED)
    stranger = cluster.key("listen:*", client="stranger")
    path = f"/v1/registrations/{made['id']}"
    body = {"type": None} if method == "PATCH" else None
    hub.call(method, path, body, key=stranger).refused(404, "unknown_registration")
    elsewhere = hub.new_zone()
    hub.call(method, path, body, key=elsewhere.admin).refused(404, "unknown_registration")
    shown = hub.call("GET", path, key=cluster.admin).json
    assert shown == {name: value for name, value in made.items() if name != "secret"}
