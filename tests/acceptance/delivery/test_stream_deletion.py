"""The deletion of a stream over the API: announced, withdrawn, done after its grace period, and its
data removed, also by a worker that is killed meanwhile.
"""

from pathlib import Path
from typing import Any

import psycopg

from tests.acceptance.unannounced import nothing_announced
from tests.acceptance.wire import Session, session, until
from tests.live import Answer, LiveHub, LiveZone
from tests.sink import Sink

EVENT = {"domain": "shop", "type": "order.placed", "key": "a"}
_STORED = (
    "SELECT count(*) FROM events e JOIN segments s ON s.id = e.segment_id WHERE s.stream_id = %s"
)
_DELETION = (
    "stream.deletion.scheduled",
    "stream.deletion.withdrawn",
    "stream.deleted",
    "stream.erased",
)


def ask(zone: LiveZone, method: str, path: str, body: Any = None, **more: Any) -> Answer:
    return zone.hub.call(method, f"/v1/{path}", body, key=zone.admin, **more)


def archived(hub: LiveHub, segment: str) -> list[Path]:
    """Return the files of a segment in the archive."""
    return [*Path(hub.env["EVENTHUB_ARCHIVE_URL"]).glob(f"*/*/*{segment}*")]


async def announced(system: Session, *types: str) -> list[dict[str, Any]]:
    """Receive the next announcements of deletions, which must be of these types; return their
    attributes.
    """
    found: list[dict[str, Any]] = []
    while len(found) < len(types):
        [message] = await system.events(1)
        event = message["event"]
        if event["type"] in _DELETION:
            assert event["type"] == types[len(found)], event
            found.append(event["attributes"])
    return found


async def test_a_scheduled_deletion_refuses_what_is_new_and_can_be_withdrawn(
    hub: LiveHub, zone: LiveZone
) -> None:
    """During the grace period the stream can be read and takes nothing new; afterwards, if it was
    withdrawn, everything is as before.
    """
    zone.create_stream("orders", keyed=True)
    zone.emit("orders", [EVENT, EVENT])
    [old] = zone.register({"streams": ["orders"], "attributes": {}})
    async with session(hub, zone.admin, web=1) as system, session(hub, zone.admin) as reader:
        await system.listen("system")
        scheduled = ask(zone, "DELETE", "streams/orders")
        assert scheduled.status == 202, scheduled
        ends = scheduled.json["deletes_at"]
        [attributes] = await announced(system, "stream.deletion.scheduled")
        assert attributes.pop("by")["client"] == "tester"
        assert attributes == {"zone": zone.name, "stream": "orders", "deletes_at": ends}
        again = ask(zone, "DELETE", "streams/orders")
        assert (again.status, again.json) == (202, scheduled.json)

        put = ("PUT", "streams/orders/state/b", {"domain": "shop", "type": "t"})
        policy = ("PUT", "streams/orders", {"retain_events": 5})
        registration = ("POST", "registrations", {"streams": ["orders"], "attributes": {}})
        for answer in (
            zone.emit("orders", EVENT),
            *(ask(zone, *one) for one in (put, policy, registration)),
        ):
            problem = answer.refused(409, "stream_deleting")
            assert problem["deletes_at"] == ends
            assert "/restore" in problem["detail"]
        assert (await reader.ask("orders", name="b"))["code"] == "stream_deleting"
        await reader.listen("orders", start="oldest")
        await reader.events(2)
        assert ask(zone, "PUT", "streams/orders", {}).json["deletes_at"] == ends
        suspended = ask(zone, "PATCH", f"registrations/{old['id']}", {"suspended": True})
        assert suspended.status == 200, suspended

        restored = ask(zone, "POST", "streams/orders/restore")
        assert (restored.status, restored.json["deletes_at"]) == (200, None)
        await announced(system, "stream.deletion.withdrawn")
        assert zone.emit("orders", EVENT).json["ranges"][0]["first"] == 3
        await reader.events(1)
        ask(zone, "POST", "streams/orders/restore").refused(409, "not_deleting")


def test_the_first_emit_after_a_withdrawn_deletion_is_accepted(
    hub: LiveHub, zone: LiveZone
) -> None:
    """Regression: it was refused while the process had not yet read of the withdrawal."""
    zone.create_stream("orders")
    assert ask(zone, "DELETE", "streams/orders").status == 202
    for web in hub.web:
        while (answer := zone.emit("orders", EVENT, url=web.url)).status == 200:
            pass
        answer.refused(409, "stream_deleting")
    with nothing_announced(hub):
        assert ask(zone, "POST", "streams/orders/restore").status == 200
        stored = [zone.emit("orders", EVENT, url=web.url) for web in hub.web]
    assert [answer.status for answer in stored] == [200] * len(stored), stored


def test_a_deletion_needs_the_right_the_zone_and_no_hold(hub: LiveHub, zone: LiveZone) -> None:
    stream = zone.create_stream("orders", hold="case 7")
    stranger, weak = hub.new_zone().admin, zone.key("emit:*", "listen:*")
    for method, path in (
        ("DELETE", f"/v1/streams/{stream}"),
        ("POST", f"/v1/streams/{stream}/restore"),
    ):
        hub.call(method, path, key=stranger).refused(404, "unknown_stream")
        hub.call(method, path, key=weak).refused(403, "forbidden")
        hub.call(method, f"{path}?zone={zone.name}", key=stranger).refused(404, "not_found")
    assert ask(zone, "DELETE", f"streams/{stream}").refused(409, "on_hold")["hold"] == "case 7"
    assert ask(zone, "PUT", f"streams/{stream}", {"hold": None}).status == 200
    old = hub.call("GET", f"/v1/streams/{stream}", key=zone.admin).headers["etag"]
    assert ask(zone, "PUT", f"streams/{stream}", {"retain_events": 9}).status == 200
    headers = {"If-Match": old}
    ask(zone, "DELETE", f"streams/{stream}", headers=headers).refused(412, "changed")
    for grace in ("-1", "1.5", "x", "", "99999999", "7776001"):
        ask(zone, "DELETE", f"streams/{stream}?grace_s={grace}").refused(400, "invalid_field")
    assert ask(zone, "GET", f"streams/{stream}").json["deletes_at"] is None


async def test_a_deleted_stream_ends_its_listeners_and_registrations_and_leaves_nothing(
    hub: LiveHub, zone: LiveZone, sink: Sink
) -> None:
    """What was pending is counted in the announcement, the other streams of a registration stay,
    and a new stream of the name refuses old cursors.
    """
    sink.answer = lambda _: (503, {})
    zone.create_stream("orders", keyed=True, archive=True, segment_events_max=4)
    zone.create_stream("others")
    url = {"callback": sink.url("/deleted")}
    alone, both = zone.register(
        {"streams": ["orders"], "attributes": {}, **url},
        {"streams": ["others", "orders"], "attributes": {"n": 1}},
    )
    zone.emit("orders", [{**EVENT, "id": f"e{n}"} for n in range(10)])
    stream = hub.sql("SELECT max(id) FROM streams WHERE name = 'orders'")[0][0]
    sink.wait(1, "/deleted")
    await until(
        lambda: bool(
            hub.sql("SELECT 1 FROM forwarding WHERE stream_id = %s AND sequence = 10", stream)
        )
    )
    hub.manage("archive", "run")
    async with session(hub, zone.admin, web=1) as system, session(hub, zone.admin) as reader:
        await system.listen("system")
        await reader.listen("orders", start="oldest")
        events = await reader.events(10)
        cursor = {"segment": events[0]["segment"], "sequence": 1}
        assert archived(hub, cursor["segment"])
        assert ask(zone, "DELETE", "streams/orders?grace_s=0").status == 202
        end = await reader.hear_op("error")
        assert (end["listener"], end["code"]) == ("a", "stream_deleted")
        _, deleted, erased = await announced(
            system, "stream.deletion.scheduled", "stream.deleted", "stream.erased"
        )
        counts = {name: deleted[name] for name in ("events", "unmatched_events", "registrations")}
        assert counts == {"events": 10, "unmatched_events": 0, "registrations": 2}
        assert erased == {
            "by": {"kind": "hub"}, "zone": zone.name, "stream": "orders", "events": 10,
            "deliveries": 10, "pending": 10,
        }  # fmt: skip
        ask(zone, "GET", "streams/orders").refused(404, "unknown_stream")
        ask(zone, "GET", f"registrations/{alone['id']}").refused(404, "unknown_registration")
        assert ask(zone, "GET", f"registrations/{both['id']}").json["streams"] == ["others"]
        assert ask(zone, "DELETE", "streams/orders").refused(404, "unknown_stream")

        zone.create_stream("orders")
        assert (await reader.ask("orders", name="c", start=cursor))["op"] == "segment_mismatch"
        assert zone.emit("orders", EVENT).json["ranges"][0]["first"] == 1
    tables = ("keyed_state", "producers", "idempotency_digests", "deliveries", "group_streams")
    left = {
        name: hub.sql(f"SELECT count(*) FROM {name} WHERE stream_id = %s", stream)[0][0]
        for name in tables
    }
    assert left == dict.fromkeys(tables, 0)
    assert hub.sql(_STORED, stream) == [(0,)]
    assert not archived(hub, cursor["segment"])


async def test_a_removal_whose_worker_is_killed_continues_with_the_next(
    hub: LiveHub, zone: LiveZone, sink: Sink
) -> None:
    """The removal waits for a lock of this test when its worker is killed with SIGKILL."""
    zone.create_stream("orders", segment_events_max=5)
    zone.emit("orders", [EVENT] * 20)
    [(stream,)] = hub.sql("SELECT max(id) FROM streams WHERE name = 'orders'")
    async with session(hub, zone.admin) as system:
        await system.listen("system")
        with psycopg.connect(hub.database_url) as lock:
            lock.execute(
                "SELECT FROM events e JOIN segments s ON s.id = e.segment_id"
                " WHERE s.stream_id = %s AND e.sequence = 13 FOR UPDATE OF e",
                (stream,),
            )
            assert ask(zone, "DELETE", "streams/orders?grace_s=0").status == 202
            await announced(system, "stream.deletion.scheduled", "stream.deleted")
            await until(lambda: hub.sql(_STORED, stream) == [(10,)])
            for worker in hub.workers:
                worker.kill()
        left = hub.sql("SELECT erased_at FROM streams WHERE id = %s", stream)
        assert left == [(None,)]
        hub.start_callbacks()
        [erased] = await announced(system, "stream.erased")
        assert erased["events"] == 20
    assert hub.sql(_STORED, stream) == [(0,)]
