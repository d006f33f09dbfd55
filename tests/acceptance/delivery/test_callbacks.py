"""Callbacks through the public API: registration, delivery, takeover by another forwarder."""

import os
import signal
import time
from typing import Any

import pytest

from eventhub.base import limits
from tests.acceptance.wire import session
from tests.live import LiveHub, LiveZone
from tests.sink import Sink

STATE = {"domain": "cluster", "type": "resource group state"}
TAKEOVER_S = limits.FORWARD_LEASE_S + limits.FORWARD_RENEW_INTERVAL_S
BUSY = 3  # times longer on a machine that runs other tests


def state(**attributes: Any) -> dict[str, Any]:
    return {**STATE, "attributes": attributes}


@pytest.fixture
def cluster(zone: LiveZone) -> LiveZone:
    zone.create_stream("cluster")
    return zone


@pytest.mark.req("SUN-17")
async def test_register_post_and_receive_on_a_websocket_and_by_callback(
    hub: LiveHub, cluster: LiveZone, sink: Sink
) -> None:
    endpoint = cluster.endpoint(sink.url("/sun17"))
    [made] = cluster.register(
        {"streams": ["cluster"], **state(state="online"), "endpoint": endpoint["id"]}
    )
    async with session(hub, cluster.admin) as reader:
        await reader.listen("cluster", registrations=[made["id"]])
        cluster.emit("cluster", [state(state="offline"), state(state="online", node="phys-3")])
        [event] = await reader.events(1)
    [called] = sink.wait(1, "/sun17")
    assert called.verified(endpoint["secret"])
    assert called.json["registrations"] == event["registrations"] == [made["id"]]
    assert (called.json["stream"], called.json["sequence"]) == ("cluster", 2)
    assert called.json["segment"] == event["segment"]
    assert called.json["event"] == event["event"]
    assert called.json["event"]["attributes"] == {"state": "online", "node": "phys-3"}


@pytest.mark.req("SUN-18")
def test_three_patterns_of_one_request_survive_a_kill_right_after_the_reply(
    hub: LiveHub, cluster: LiveZone, sink: Sink
) -> None:
    callback = sink.url("/sun18")
    requested = [
        {"streams": ["cluster"], **state(node=node), "callback": callback} for node in "abc"
    ]
    ids = [made["id"] for made in cluster.register(*requested)]
    for process in (*hub.web, *hub.forwarders):
        process.kill()
    for process in (*hub.web, *hub.forwarders):
        process.start()
    page = hub.call("GET", "/v1/registrations", key=cluster.admin).json
    assert [item["id"] for item in page["items"]] == ids
    assert {item["callback"] for item in page["items"]} == {callback}
    cluster.emit("cluster", [state(node=node) for node in "abcd"])
    called = sink.wait(3, "/sun18")
    assert sorted(one.json["registrations"] for one in called) == [[id] for id in ids]


@pytest.mark.req("SUN-19")
def test_a_disconnected_client_is_called_at_its_listening_address(
    cluster: LiveZone, sink: Sink
) -> None:
    """Nothing of the client is connected: only a plain HTTP listener waits at its address."""
    cluster.register(
        {"streams": ["cluster"], **state(state="online"), "callback": sink.url("/sun19")}
    )
    cluster.emit("cluster", [state(state="online"), state(state="offline")])
    [called] = sink.wait(1, "/sun19")
    cluster.emit("cluster", state(state="online"))  # the third: nothing came for the second
    assert [one.json["sequence"] for one in sink.wait(2, "/sun19")] == [1, 3]
    assert called.json["event"]["attributes"] == {"state": "online"}


@pytest.mark.req("SUN-26")
def test_when_the_leading_forwarder_is_killed_another_takes_over_within_the_lease(
    hub: LiveHub, cluster: LiveZone, sink: Sink
) -> None:
    cluster.register(
        {"streams": ["cluster"], **state(state="online"), "callback": sink.url("/sun26")}
    )
    cluster.emit("cluster", state(state="online"))
    sink.wait(1, "/sun26")
    leader = leader_of(hub, cluster)
    leader.kill()
    try:
        began = time.monotonic()
        cluster.emit("cluster", state(state="online"))
        called = sink.wait(2, "/sun26")
        # the lease and the next search for free streams
        assert time.monotonic() - began < BUSY * TAKEOVER_S
        assert [one.json["sequence"] for one in called] == [1, 2]
        assert leader_of(hub, cluster) is not leader
    finally:
        leader.start()
    cluster.emit("cluster", state(state="online"))
    called = sink.wait(3, "/sun26")
    assert [one.json["sequence"] for one in called] == [1, 2, 3]
    assert len({one.id for one in called}) == 3


@pytest.mark.req("SUN-26")
def test_a_leader_suspended_for_longer_than_its_lease_writes_nothing_twice(
    hub: LiveHub, cluster: LiveZone, sink: Sink
) -> None:
    cluster.register(
        {"streams": ["cluster"], **state(state="online"), "callback": sink.url("/stopped")}
    )
    cluster.emit("cluster", state(state="online"))
    sink.wait(1, "/stopped")
    leader = leader_of(hub, cluster)
    os.kill(leader.pid, signal.SIGSTOP)
    try:
        cluster.emit("cluster", [state(state="online")] * 20)
        sink.wait(21, "/stopped")
    finally:
        os.kill(leader.pid, signal.SIGCONT)
    cluster.emit("cluster", [state(state="online")] * 20)
    sink.wait(41, "/stopped")
    rows = hub.sql(
        "SELECT count(*), count(DISTINCT sequence) FROM deliveries WHERE stream_id = %s",
        stream_id(hub, cluster),
    )
    assert rows == [(41, 41)]


@pytest.mark.req("OIF-01")
async def test_a_second_consumer_is_added_without_the_producer_knowing(
    hub: LiveHub, cluster: LiveZone, sink: Sink
) -> None:
    """The producer's key, code and requests stay the same; it does not know its consumers."""
    producer = cluster.key("emit:cluster", client="producer")

    def produce() -> dict[str, Any]:
        answer = cluster.emit("cluster", state(state="online"), key=producer)
        assert answer.status == 200
        return dict(answer.json)

    first = cluster.key("listen:cluster", client="first")
    cluster.register({"streams": ["cluster"], **STATE, "callback": sink.url("/first")}, key=first)
    before = produce()
    sink.wait(1, "/first")
    second = cluster.key("listen:cluster", client="second")
    cluster.register({"streams": ["cluster"], **STATE, "callback": sink.url("/second")}, key=second)
    after = produce()
    assert sink.wait(1, "/second")[0].json["sequence"] == 2
    assert len(sink.wait(2, "/first")) == 2
    assert before.keys() == after.keys()
    assert b"first" not in sink.at("/second")[0].body


@pytest.mark.req("RDY-04")
def test_a_deleted_registration_gets_no_callback(
    hub: LiveHub, cluster: LiveZone, sink: Sink
) -> None:
    endpoint = cluster.endpoint(sink.url("/rdy04"))
    deleted, other = cluster.register(
        {"streams": ["cluster"], **state(state="online"), "endpoint": endpoint["id"]},
        {"streams": ["cluster"], **state(marker=True), "endpoint": endpoint["id"]},
    )
    cluster.emit("cluster", state(state="online"))
    [called] = sink.wait(1, "/rdy04")
    assert called.json["registrations"] == [deleted["id"]]
    assert hub.call("DELETE", f"/v1/registrations/{deleted['id']}", key=cluster.admin).status == 204
    cluster.emit("cluster", [state(state="online"), state(marker=True)])
    called = sink.wait(2, "/rdy04")[1]
    assert (called.json["sequence"], called.json["registrations"]) == (3, [other["id"]])
    assert hub.sql(
        "SELECT sequence FROM deliveries WHERE stream_id = %s ORDER BY 1", stream_id(hub, cluster)
    ) == [(1,), (3,)]


def stream_id(hub: LiveHub, zone: LiveZone) -> int:
    [(id,)] = hub.sql(
        "SELECT s.id FROM streams s JOIN zones z ON z.id = s.zone_id"
        " WHERE z.name = %s AND s.name = 'cluster'",
        zone.name,
    )
    return int(id)


def leader_of(hub: LiveHub, zone: LiveZone) -> Any:
    """Return the forwarder that holds the stream's lease: the one whose connections show
    its owner.
    """
    [(owner,)] = hub.sql(
        "SELECT owner::text FROM forwarding WHERE stream_id = %s", stream_id(hub, zone)
    )
    return next(process for process in hub.forwarders if process.running and owner in process.log())
