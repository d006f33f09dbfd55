"""Timers of a running hub: a fire is one event, for the owner's listeners and registrations."""

import time
from typing import Any

import pytest

from tests.acceptance.wire import session
from tests.live import LiveHub, LiveZone
from tests.sink import Sink


def create(zone: LiveZone, handle: str, *, key: str = "", **fields: Any) -> dict[str, Any]:
    body = {"stream": "alarms", "handle": handle, **fields}
    answer = zone.hub.call("POST", "/v1/timers", body, key=key or zone.admin)
    assert answer.status == 201, answer
    created: dict[str, Any] = answer.json
    return created


@pytest.mark.req("SUN-24")
async def test_a_timer_at_one_second_is_one_event(hub: LiveHub, zone: LiveZone) -> None:
    hub.start_callbacks()
    zone.create_stream("alarms")
    async with session(hub, zone.admin) as reader:
        await reader.listen("alarms")
        began_s = time.monotonic()
        created = create(zone, "soon", after_s=1)
        [tick] = await reader.events(1)
        took_s = time.monotonic() - began_s
        zone.emit("alarms", {"domain": "d", "type": "last"})
        [last] = await reader.events(1)
    assert took_s >= 0.9
    assert (tick["event"]["domain"], tick["event"]["type"]) == ("Time", "Tick")
    assert tick["event"]["attributes"]["timer"] == created["id"]
    assert (tick["sequence"], last["sequence"]) == (1, 2)
    listed = hub.call("GET", "/v1/timers", key=zone.admin).json
    assert listed["items"] == []


@pytest.mark.req("RDY-43")
async def test_a_tick_is_bound_by_an_expression_and_other_clients_do_not_get_it(
    hub: LiveHub, zone: LiveZone, sink: Sink
) -> None:
    zone.create_stream("alarms")
    path = f"/{zone.name}"
    filter = {"streams": ["alarms"], "language": "ready", "filter": "t: Time::Tick"}
    [mine] = zone.register({**filter, "callback": sink.url(f"{path}/mine")})
    other = zone.key("emit:*", "listen:*", client="other")
    zone.register({**filter, "callback": sink.url(f"{path}/other")}, key=other)
    async with session(hub, other) as reader:
        await reader.listen("alarms")
        create(zone, "soon", after_s=0, registration=mine["id"])
        [call] = sink.wait(1, f"{path}/mine")
        zone.emit("alarms", {"domain": "d", "type": "last"})
        [only] = await reader.events(1)
    assert only["event"]["type"] == "last"
    assert call.json["event"]["attributes"]["handle"] == "soon"
    bound = call.json["bindings"][str(mine["id"])]["t"]
    assert bound["sequence"] == call.json["sequence"]
    assert sink.at(f"{path}/other") == []


def test_changes_of_timers_are_events_of_system_with_the_caller(
    hub: LiveHub, zone: LiveZone
) -> None:
    zone.create_stream("alarms")
    system = hub.call("GET", "/v1/streams/system", key=zone.admin).json
    start = f"{system['segment']['uuid']}:{system['last']}"
    created = create(zone, "hourly", cron="0 * * * *", timezone="Europe/Berlin")
    path = f"/v1/timers/{created['id']}"
    for body in ({"suspended": True}, {"suspended": True}, {"suspended": False}):
        assert hub.call("PATCH", path, body, key=zone.admin).status == 200
    assert hub.call("DELETE", path, key=zone.admin).status == 204
    page = hub.call("GET", f"/v1/streams/system/events?from={start}&limit=1000", key=zone.admin)
    found = [one["event"] for one in page.json["events"]]
    own = [one for one in found if one["type"].startswith("timer.")]
    assert [(one["type"], one["attributes"]["suspended"]) for one in own] == [
        ("timer.created", False),
        ("timer.changed", True),
        ("timer.changed", False),
        ("timer.deleted", False),
    ]
    assert all(one["attributes"]["by"]["client"] == "tester" for one in own)
