"""Quotas of events per second and of stored bytes, over two web processes."""

import asyncio
import http.client
import re
import time
from typing import Any

import aiohttp
import pytest

from eventhub.base import limits
from tests.busy import stretched
from tests.live import Answer, LiveZone

EVENT = {"domain": "shop", "type": "order.placed"}
TAKES_EFFECT_S = 2.0
ANNOUNCED_S = 60.0
LARGE = {**EVENT, "body": "x" * 100_000}


def set_quotas(zone: LiveZone, client: str = "", **values: int | None) -> None:
    """Set the quotas of the zone, or of a client of it."""
    of = f"&client={client}" if client else ""
    answer = zone.hub.operate("PUT", f"/v1/limits?zone={zone.name}{of}", values)
    assert answer.status == 200, answer


def announced_at_last(zone: LiveZone, type: str) -> dict[str, Any]:
    """Return the attributes of the first event of a type in `system`, once there is one. The zone
    sees few of its events, so that a page may be empty.
    """
    start, until_s = "oldest", time.monotonic() + ANNOUNCED_S
    while True:
        path = f"/v1/streams/system/events?from={start}&limit=1000&type={type}"
        page = zone.hub.call("GET", path, key=zone.admin).json
        if page["events"]:
            attributes: dict[str, Any] = page["events"][0]["event"]["attributes"]
            return attributes
        assert time.monotonic() < until_s, f"no {type}"
        time.sleep(0.05)
        start = f"{page['cursor']['segment']}:{page['cursor']['sequence']}"


def emit_until_refused(zone: LiveZone, key: str, *, events: int = 1) -> Answer:
    """Emit until an emit is refused; return that answer."""
    until_s = time.monotonic() + 60
    while time.monotonic() < until_s:
        answer = zone.emit("orders", [EVENT] * events, key=key)
        if answer.status != 200:
            return answer
    raise AssertionError("no emit was refused")


def exceed(zone: LiveZone, key: str) -> None:
    """Emit so much more than a rate of one event per second that it is used up for a minute."""
    until_s = time.monotonic() + ANNOUNCED_S
    while zone.emit("orders", [EVENT] * 60, key=key).status != 200:
        assert time.monotonic() < until_s


def wait_until_limited(zone: LiveZone, key: str) -> Answer:
    """Emit until an answer shows a limit: a quota takes effect within two seconds."""
    until_s = time.monotonic() + stretched(TAKES_EFFECT_S)
    while True:
        answer = zone.emit("orders", EVENT, key=key)
        if "ratelimit-policy" in answer.headers:
            return answer
        assert time.monotonic() < until_s, "the quota has not taken effect"


async def storm(zone: LiveZone, key: str, seconds: float, *, clients: int = 8) -> tuple[int, int]:
    """Emit as fast as possible over both web processes; return how many were stored and refused."""
    counts = {200: 0, 429: 0}
    until_s = time.monotonic() + seconds

    async def emit(session: aiohttp.ClientSession, url: str) -> None:
        while time.monotonic() < until_s:
            async with session.post(f"{url}/v1/streams/orders/events", json=EVENT) as answer:
                counts[answer.status] += 1

    headers = {"authorization": f"Bearer {key}"}
    async with aiohttp.ClientSession(headers=headers) as session:
        urls = [zone.hub.web[n % 2].url for n in range(clients)]
        await asyncio.gather(*(emit(session, url) for url in urls))
    return counts[200], counts[429]


def test_an_answer_has_what_is_left_of_the_rate(zone: LiveZone) -> None:
    zone.create_stream("orders")
    key = zone.key("emit:orders", client="shop")
    assert "ratelimit" not in zone.emit("orders", EVENT, key=key).headers
    set_quotas(zone, "shop", events_per_s=50)
    set_quotas(zone, events_per_s=2_000)
    answer = wait_until_limited(zone, key)
    until_s = time.monotonic() + stretched(TAKES_EFFECT_S)
    while "zone" not in answer.headers["ratelimit-policy"]:
        assert time.monotonic() < until_s
        answer = zone.emit("orders", EVENT, key=key)
    assert answer.headers["ratelimit-policy"] == (
        '"client";q=50;w=1;qu="events", "zone";q=2000;w=1;qu="events"'
    )
    left = re.fullmatch(r'"client";r=(\d+);t=1, "zone";r=(\d+);t=1', answer.headers["ratelimit"])
    assert left is not None
    assert int(left[1]) < 50
    assert int(left[2]) <= 2_000


def test_more_than_the_rate_is_refused_with_when_to_come_again(zone: LiveZone) -> None:
    zone.create_stream("orders")
    key, other = zone.key("emit:orders", client="shop"), zone.key("emit:orders", client="other")
    set_quotas(zone, "shop", events_per_s=10)
    wait_until_limited(zone, key)
    refused = emit_until_refused(zone, key, events=100)
    problem = refused.refused(429, "rate_limited")
    assert (problem["scope"], problem["events_per_s"]) == ("client", 10)
    assert 1 <= int(refused.headers["retry-after"]) <= 10
    assert '"client";r=0;t=' in refused.headers["ratelimit"]
    assert zone.emit("orders", [EVENT] * 100, key=other).status == 200
    found = zone.hub.call("GET", "/v1/limits", key=key).json["client"]["events_per_s"]
    assert (found["quota"], found["limit"]) == (10, 10)
    assert found["used"] > 10
    set_quotas(zone, "shop")
    until_s = time.monotonic() + stretched(TAKES_EFFECT_S)
    while zone.emit("orders", EVENT, key=key).status != 200:
        assert time.monotonic() < until_s, "the quota has not been removed"


async def test_all_processes_share_one_rate(zone: LiveZone) -> None:
    zone.create_stream("orders")
    key = zone.key("emit:orders", client="shop")
    rate, seconds = 100, 3.0
    await asyncio.to_thread(set_quotas, zone, "shop", events_per_s=rate)
    await asyncio.to_thread(wait_until_limited, zone, key)
    for web in zone.hub.web:  # the other process too
        await asyncio.to_thread(_wait_until_limited_at, zone, web.url, key)
    stored, refused = await storm(zone, key, seconds)
    assert refused
    held = len(zone.hub.web) * rate * limits.EMIT_RATE_LEASE_S
    assert 0.6 * rate * seconds <= stored <= rate * (seconds + 1) + held


def _wait_until_limited_at(zone: LiveZone, url: str, key: str) -> None:
    until_s = time.monotonic() + stretched(TAKES_EFFECT_S)
    while True:
        answer = zone.hub.call("POST", "/v1/streams/orders/events", EVENT, key=key, url=url)
        if "ratelimit-policy" in answer.headers:
            return
        assert time.monotonic() < until_s, "the quota has not taken effect"


async def test_the_clients_of_a_zone_share_its_rate(zone: LiveZone) -> None:
    zone.create_stream("orders")
    keys = [zone.key("emit:orders", client=name) for name in ("one", "two")]
    await asyncio.to_thread(set_quotas, zone, events_per_s=100)
    for key in keys:
        for web in zone.hub.web:
            await asyncio.to_thread(_wait_until_limited_at, zone, web.url, key)
    counts = await asyncio.gather(*(storm(zone, key, 2.0, clients=4) for key in keys))
    assert sum(stored for stored, _ in counts) <= 100 * 3 + 40


def test_the_state_of_a_key_counts_as_an_event(zone: LiveZone) -> None:
    zone.create_stream("lamps", keyed=True)
    zone.create_stream("orders")
    key = zone.key("emit:*", client="shop")
    set_quotas(zone, "shop", events_per_s=2)
    wait_until_limited(zone, key)
    for _ in range(20):
        answer = zone.hub.call("PUT", "/v1/streams/lamps/state/a", EVENT, key=key)
        if answer.status not in (200, 201):
            break
    answer.refused(429, "rate_limited")
    assert int(answer.headers["retry-after"]) >= 1
    assert '"client";q=2' in answer.headers["ratelimit-policy"]


def fill(zone: LiveZone, key: str) -> Answer:
    """Emit large events until an emit is refused; return that answer."""
    until_s = time.monotonic() + ANNOUNCED_S
    while (answer := zone.emit("orders", [LARGE] * 5, key=key)).status == 200:
        assert time.monotonic() < until_s, "no emit was refused"
    return answer


def emit_at_last(zone: LiveZone, key: str, stream: str = "orders") -> None:
    until_s = time.monotonic() + ANNOUNCED_S
    while (answer := zone.emit(stream, EVENT, key=key)).status != 200:
        assert time.monotonic() < until_s, answer


def test_a_zone_at_its_quota_of_stored_bytes_stores_nothing_until_there_is_space(
    zone: LiveZone,
) -> None:
    zone.create_stream("orders")
    zone.create_stream("audit")
    zone.create_stream("lamps", keyed=True)
    zone.create_stream("ticks", durability="transient")
    key = zone.key("emit:*", client="shop")
    quota = 2 * 1024 * 1024
    set_quotas(zone, stored_bytes=quota)
    refused = fill(zone, key)
    problem = refused.refused(507, "zone_storage_full")
    assert problem["quota_bytes"] == quota
    assert "Shorten the retention" in problem["detail"]
    assert int(refused.headers["retry-after"]) >= 1
    for web in zone.hub.web:
        until_s = time.monotonic() + ANNOUNCED_S
        path = "/v1/streams/audit/events"
        while zone.hub.call("POST", path, EVENT, key=key, url=web.url).status == 200:
            assert time.monotonic() < until_s, "the other process still stores events"
    state = zone.hub.call("PUT", "/v1/streams/lamps/state/a", EVENT, key=key)
    state.refused(507, "zone_storage_full")
    assert zone.emit("ticks", EVENT, key=key).status == 200  # it is not stored in the database
    reached = announced_at_last(zone, "zone.quota_reached")
    assert reached["used"] >= quota
    assert (reached["kind"], reached["quota"], "client" in reached) == (
        "stored_bytes", quota, False,
    )  # fmt: skip
    found = zone.hub.call("GET", "/v1/limits", key=zone.admin).json["zone"]["stored_bytes"]
    assert (found["quota"], found["limit"]) == (quota, quota)
    assert found["used"] >= quota
    other = zone.hub.new_zone()
    other.create_stream("orders")
    assert other.emit("orders", EVENT).status == 200
    set_quotas(zone, stored_bytes=64 * quota)
    emit_at_last(zone, key)
    assert announced_at_last(zone, "zone.quota_available")["quota"] == 64 * quota


def test_shorter_retention_makes_space_for_new_events(zone: LiveZone) -> None:
    zone.create_stream("orders")
    zone.create_stream("audit")
    key = zone.key("emit:*", client="shop")
    set_quotas(zone, stored_bytes=1024 * 1024)
    fill(zone, key).refused(507, "zone_storage_full")
    answer = zone.hub.call("PUT", "/v1/streams/orders", {"retain_age_s": 1}, key=zone.admin)
    assert answer.status == 200, answer
    emit_at_last(zone, key, "audit")


@pytest.mark.parametrize("kind", ["stored_bytes", "unknown"])
def test_a_client_has_no_quota_of_stored_bytes(zone: LiveZone, kind: str) -> None:
    zone.key("emit:*", client="shop")
    path = f"/v1/limits?zone={zone.name}&client=shop"
    answer = zone.hub.operate("PUT", path, {kind: 1 << 30})
    code = "invalid_field" if kind == "stored_bytes" else "unknown_field"
    assert answer.refused(400, code)["position"]["field"] == kind


def test_the_body_of_a_refused_request_is_not_read_and_the_connection_stays_usable(
    zone: LiveZone,
) -> None:
    zone.create_stream("orders")
    key = zone.key("emit:orders", client="shop")
    set_quotas(zone, "shop", events_per_s=1)
    wait_until_limited(zone, key)
    exceed(zone, key)
    connection = http.client.HTTPConnection(zone.hub.url.removeprefix("http://"), timeout=30)
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    sockets = set()
    for body in (b"no JSON", b"{" * 100, b"x" * 300_000):
        connection.request("POST", "/v1/streams/orders/events", body, headers)
        answer = connection.getresponse()
        assert (answer.status, b"rate_limited" in answer.read()) == (429, True)
        sockets.add(connection.sock and connection.sock.fileno())
    assert len(sockets) == 1
    connection.close()
    connection.putrequest("POST", "/v1/streams/orders/events")
    for name, value in {**headers, "content-length": "300000"}.items():
        connection.putheader(name, value)
    connection.endheaders()  # and no body
    assert connection.getresponse().status == 429
    connection.close()


def test_the_position_in_a_refusal_is_never_behind_what_the_process_has_stored(
    zone: LiveZone,
) -> None:
    zone.create_stream("orders")
    key, other = zone.key("emit:orders", client="shop"), zone.key("emit:orders", client="other")
    set_quotas(zone, "shop", events_per_s=1)
    wait_until_limited(zone, key)
    exceed(zone, key)
    again = {**EVENT, "id": {"sequence": 1}}
    zone.emit("orders", again, key=other)
    for events in ([EVENT], [EVENT, again], [EVENT, EVENT]):  # `again` is a duplicate
        stored = zone.emit("orders", events, key=other)
        refused = zone.emit("orders", EVENT, key=key)
        refused.refused(429, "rate_limited")
        assert refused.headers["eventhub-sequence"] == str(stored.json["ranges"][-1]["last"])
        assert refused.headers["eventhub-sequence"] == stored.headers["eventhub-sequence"]
        assert refused.headers["eventhub-segment"] == stored.headers["eventhub-segment"]


async def test_the_more_refusals_of_a_client_wait_the_longer_they_take_and_no_others_do(
    zone: LiveZone,
) -> None:
    zone.create_stream("orders")
    keys = [zone.key("emit:orders", client=name) for name in ("shop", "other")]
    for name, key in zip(("shop", "other"), keys, strict=True):
        await asyncio.to_thread(set_quotas, zone, name, events_per_s=1)
        await asyncio.to_thread(wait_until_limited, zone, key)
        await asyncio.to_thread(exceed, zone, key)

    async def refused_s(session: aiohttp.ClientSession, key: str) -> float:
        started_s = time.monotonic()
        url, headers = "/v1/streams/orders/events", {"authorization": f"Bearer {key}"}
        async with session.post(zone.hub.url + url, json=EVENT, headers=headers) as answer:
            assert answer.status == 429
        return time.monotonic() - started_s

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        crowd = [asyncio.create_task(refused_s(session, keys[0])) for _ in range(300)]
        await asyncio.sleep(0)
        other_s = await refused_s(session, keys[1])
        slowest_s = max(await asyncio.gather(*crowd))
    assert slowest_s > 300 / limits.EMIT_REFUSALS_PER_S - 0.1
    assert other_s < limits.EMIT_REFUSAL_PAUSE_S[1] + 1.0, "not behind the crowd"
