"""The positions of sessions and their lag, and where a session is connected."""

from tests.acceptance.consumers import (
    acknowledge,
    change,
    connect,
    consumer,
    create_group,
    create_session,
    numbers,
)
from tests.acceptance.wire import EVENT, session
from tests.live import LiveHub, LiveZone


async def test_positions_and_lag_follow_the_acknowledgements(hub: LiveHub, zone: LiveZone) -> None:
    zone.create_stream("orders")
    made = consumer(zone)
    zone.emit("orders", [EVENT] * 5)
    path = f"/v1/sessions/{made['id']}"
    before = hub.call("GET", path, key=zone.admin).json
    assert (before["lag"], before["connected_at"], before["connected_process"]) == (5, None, None)
    async with session(hub, zone.admin) as reader:
        await connect(reader)
        assert await numbers(reader, 5) == [1, 2, 3, 4, 5]
        await acknowledge(reader, 4, through=2)
        [position] = hub.call("GET", f"{path}/positions", key=zone.admin).json["items"]
        connected = hub.call("GET", path, key=zone.admin).json
    stream = hub.call("GET", "/v1/streams/orders", key=zone.admin).json
    cursor = {"segment": stream["segment"]["uuid"], "sequence": 2}
    assert position.pop("saved_at") > connected["connected_at"]
    assert position == {
        "stream": "orders", "cursor": cursor, "acknowledged": [4], "last": 5, "lag": 3
    }  # fmt: skip
    assert connected["lag"] == 3
    members = hub.operate("GET", "/v1/members").json["items"]
    [node] = {one["node"] for one in members if one["pid"] == hub.web[0].pid}
    assert connected["connected_process"] == f"{node} {hub.web[0].pid}"


async def test_a_session_that_is_pulled_is_not_shown_as_connected(
    hub: LiveHub, zone: LiveZone
) -> None:
    """It was, by a process named `pull`, for ever after its first pull."""
    zone.create_stream("orders")
    made = consumer(zone)
    zone.emit("orders", EVENT)
    path = f"/v1/sessions/{made['id']}"
    assert hub.call("POST", f"{path}/pull", {}, key=zone.admin).json["events"]
    shown = hub.call("GET", path, key=zone.admin).json
    assert (shown["connected_at"], shown["connected_process"]) == (None, None)


async def test_a_session_of_a_killed_process_is_not_shown_as_connected(
    hub: LiveHub, zone: LiveZone
) -> None:
    """It was, until it connected again. The process's heartbeats end, and it is lost."""
    zone.create_stream("orders")
    made = consumer(zone)
    path = f"/v1/sessions/{made['id']}"
    async with session(hub, zone.admin) as reader:
        await connect(reader)
        shown = hub.call("GET", path, key=zone.admin).json
        node = shown["connected_process"].split()[0]
        lost = "UPDATE sessions SET attached_process = %s WHERE id = %s"
        hub.sql(f"{lost} RETURNING id", f"{node} 999999999", made["id"])
        shown = hub.call("GET", path, key=zone.admin).json
    assert (shown["connected_at"], shown["connected_process"]) == (None, None)


async def test_a_session_without_positions_has_no_lag(hub: LiveHub, zone: LiveZone) -> None:
    zone.create_stream("orders")
    lossy = consumer(zone, "lossy", quality="best_effort")
    admin = create_session(zone, "boss", kind="admin")
    zone.emit("orders", EVENT)
    listed = hub.call("GET", "/v1/sessions", key=zone.admin).json["items"]
    assert {one["id"]: one["lag"] for one in listed} == {lossy["id"]: None, admin["id"]: None}
    positions = hub.call("GET", f"/v1/sessions/{admin['id']}/positions", key=zone.admin).json
    assert positions == {"items": [], "next": None}


async def test_a_key_sees_positions_of_streams_that_it_may_listen_to(
    hub: LiveHub, zone: LiveZone
) -> None:
    zone.create_stream("orders")
    zone.create_stream("alarms")
    wide, narrow = (
        zone.key(*grants, client="shop") for grants in (["listen:*"], ["listen:alarms"])
    )
    made = create_session(zone, "s", key=wide)
    zone.register({"streams": ["orders"], "session": "s"}, {"streams": ["alarms"], "session": "s"},
                  key=wide)  # fmt: skip
    path = f"/v1/sessions/{made['id']}/positions"
    seen = [
        [one["stream"] for one in hub.call("GET", path, key=key).json["items"]]
        for key in (wide, narrow)
    ]
    assert seen == [["orders", "alarms"], ["alarms"]]


def test_a_session_that_leaves_its_group_keeps_the_positions_of_its_own_registrations(
    hub: LiveHub, zone: LiveZone
) -> None:
    zone.create_stream("orders")
    zone.create_stream("refunds")
    create_group(zone)
    made = create_session(zone, group="g")
    zone.register({"streams": ["orders"], "domain": "shop", "session_group": "g"})
    zone.register({"streams": ["refunds"], "domain": "shop", "session": "s"})

    def streams() -> list[str]:
        page = hub.call("GET", "/v1/sessions/s/positions", key=zone.admin).json
        return [one["stream"] for one in page["items"]]

    assert streams() == ["orders", "refunds"]
    change(zone, made, group=None)
    assert streams() == ["refunds"]
