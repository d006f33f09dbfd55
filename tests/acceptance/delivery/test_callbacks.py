"""Callbacks through the public API: registration, delivery, takeover by another forwarder."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from eventhub.base import limits
from tests.acceptance.matched_streams import samples, wait_forwarded
from tests.acceptance.wire import session
from tests.integration.forward_world import eventually
from tests.live import LiveHub, LiveZone
from tests.live_processes import LiveProcess
from tests.sink import Sink

STATE = {"domain": "cluster", "type": "resource group state"}
TAKEOVER = timedelta(seconds=1)  # from the end of a lease to the next owner's first delivery


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
    """The lease ends at most 2 s after the kill. All times are PostgreSQL's."""
    stream = leased_stream(hub, cluster, sink.url("/sun26"))
    cluster.emit("cluster", state(state="online"))
    sink.wait(1, "/sun26")
    leader = leader_of(hub, cluster)
    leader.kill()
    try:
        [(lease_end, left)] = hub.sql(
            "SELECT expires_at, expires_at - clock_timestamp() FROM forwarding"
            " WHERE stream_id = %s",
            stream,
        )
        assert left <= timedelta(seconds=limits.FORWARD_LEASE_S)
        cluster.emit("cluster", state(state="online"))
        sink.wait(2, "/sun26")
        assert leader_of(hub, cluster) is not leader
    finally:
        leader.start()
    [(created,)] = hub.sql(
        "SELECT created_at FROM deliveries WHERE stream_id = %s AND sequence = 2", stream
    )
    assert timedelta(0) <= created - lease_end <= TAKEOVER
    cluster.emit("cluster", state(state="online"))
    called = sink.wait(3, "/sun26")
    assert [one.json["sequence"] for one in called] == [1, 2, 3]
    assert len({one.id for one in called}) == 3


@pytest.mark.req("SUN-26")
def test_a_leader_suspended_while_it_writes_writes_nothing_after_its_lease(
    hub: LiveHub, cluster: LiveZone, sink: Sink
) -> None:
    """Its statement waits in PostgreSQL while the lease gets another owner's epoch, and ends before
    the next owner writes the same events. By its own clock the leader still has the lease.
    """
    stream = leased_stream(hub, cluster, sink.url("/stopped"))
    cluster.emit("cluster", state(state="online"))
    sink.wait(1, "/stopped")
    leader = leader_of(hub, cluster)
    lost = leases_lost(hub)
    with recorded_writes(hub, stream), psycopg.connect(hub.database_url) as lock:
        lock.execute("LOCK TABLE deliveries IN ACCESS EXCLUSIVE MODE")
        cluster.emit("cluster", [state(state="online")] * 20)
        eventually(lambda: len(writers(hub)) == 1, "the leader writes")
        [writer] = writers(hub)
        with stopped(leader), stopped(*(one for one in hub.forwarders if one is not leader)):
            hub.sql(
                "UPDATE forwarding SET epoch = epoch + 1, expires_at = clock_timestamp()"
                " WHERE stream_id = %s",
                stream,
            )
            lock.rollback()
            eventually(lambda: has_ended(hub, writer), "the end of the statement")
            assert hub.sql("SELECT * FROM written") == []
        eventually(lambda: leases_lost(hub) > lost, "the leader notices")
        cluster.emit("cluster", [state(state="online")] * 20)
        called = sink.wait(41, "/stopped")
        written = hub.sql("SELECT sequence FROM written ORDER BY 1")
        assert [sequence for (sequence,) in written] == [*range(2, 42)]
        assert hub.sql("SELECT last_value FROM attempted") == [(40,)]
    assert sorted(one.json["sequence"] for one in called) == [*range(1, 42)]
    assert len({one.id for one in called}) == 41


def leased_stream(hub: LiveHub, zone: LiveZone, callback: str) -> int:
    """Register a callback; return the stream once a forwarder has it and both are live."""
    zone.register({"streams": ["cluster"], **state(state="online"), "callback": callback})
    stream = stream_id(hub, zone)
    wait_forwarded(hub, [stream])
    return stream


def leases_lost(hub: LiveHub) -> float:
    return sum(value for _, value in samples(hub, "eventhub_forward_leases_lost_total"))


def writers(hub: LiveHub) -> set[int]:
    """Return the backends of forwarders whose writing statement waits for a lock."""
    rows = hub.sql(
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
        " AND wait_event_type = 'Lock' AND query LIKE 'WITH held%%'"
    )
    return {pid for (pid,) in rows}


def has_ended(hub: LiveHub, backend: int) -> bool:
    query = "SELECT state FROM pg_stat_activity WHERE pid = %s"
    return hub.sql(query, backend) != [("active",)]


@contextmanager
def stopped(*processes: LiveProcess) -> Iterator[None]:
    """Suspend processes until the block ends."""
    for process in processes:
        os.kill(process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            os.kill(process.pid, signal.SIGCONT)


@contextmanager
def recorded_writes(hub: LiveHub, stream: int) -> Iterator[None]:
    """Record each delivery of a stream in the table `written`; the sequence `attempted` counts also
    those that were rolled back.
    """
    for statement in (
        "CREATE TABLE written (sequence bigint)",
        "CREATE SEQUENCE attempted",
        "CREATE FUNCTION record_write() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " PERFORM nextval('attempted');"
        " INSERT INTO written VALUES (NEW.sequence); RETURN NEW; END $$",
        "CREATE TRIGGER recorded BEFORE INSERT ON deliveries FOR EACH ROW"
        f" WHEN (NEW.stream_id = {stream}) EXECUTE FUNCTION record_write()",
    ):
        hub.sql(statement)
    try:
        yield
    finally:
        hub.sql("DROP FUNCTION record_write CASCADE")
        hub.sql("DROP TABLE written")
        hub.sql("DROP SEQUENCE attempted")


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
    """Return the forwarder that holds the stream's lease: the one whose log has its owner."""
    [(owner,)] = hub.sql(
        "SELECT owner::text FROM forwarding WHERE stream_id = %s", stream_id(hub, zone)
    )
    return next(process for process in hub.forwarders if process.running and owner in process.log())
