"""Keys, tokens and grants on the hot routes of both web processes, and the stream `system`."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from eventhub_client.types import HubProblem
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.acceptance.eventhub.eventlog.test_retention import read_all
from tests.acceptance.wire import EVENT, Emitter, Session, session
from tests.busy import stretched
from tests.live import LiveHub, LiveZone

EFFECTIVE_S = 1.0
MEASURED_S = 0.5  # what the test's own calls may take on a busy machine


async def closed(reader: Session) -> tuple[int, str]:
    """Return code and reason of the next close, after any other messages."""
    try:
        while True:
            reader.skipped.append(await reader.hear())
    except ConnectionClosed as error:
        assert error.rcvd is not None
        return error.rcvd.code, error.rcvd.reason


@pytest.mark.parametrize("web", [0, 1])
async def test_a_revoked_key_closes_its_sockets_with_4401_within_a_second(
    hub: LiveHub, zone: LiveZone, web: int
) -> None:
    zone.create_stream("orders")
    key, other = zone.key("listen:*"), zone.key("listen:*")
    async with session(hub, key, web=web) as reader, session(hub, other, web=web) as staying:
        for one in (reader, staying):
            await one.listen("orders")
        closing = asyncio.create_task(closed(reader))
        await asyncio.to_thread(zone.revoke, key)
        async with asyncio.timeout(stretched(EFFECTIVE_S + MEASURED_S)):
            assert await closing == (4401, "invalid_credentials")
        assert reader.skipped[-1]["code"] == "invalid_credentials"
        zone.emit("orders", EVENT)
        assert len(await staying.events(1)) == 1
    with pytest.raises(InvalidStatus) as caught:
        async with session(hub, key, web=web):
            pass
    assert caught.value.response.status_code == 401


def test_a_revoked_key_is_refused_by_the_emit_route_of_both_processes_within_a_second(
    zone: LiveZone,
) -> None:
    zone.create_stream("orders")
    key = zone.key("emit:*")
    with Emitter(zone, web=0, key=key) as one, Emitter(zone, web=1, key=key) as two:
        for emitter in (one, two):
            assert emitter.post("orders", EVENT)[0] == 200
        zone.revoke(key)
        until = time.monotonic() + stretched(EFFECTIVE_S + MEASURED_S)
        for emitter in (one, two):
            while (answer := emitter.post("orders", EVENT))[0] == 200:
                assert time.monotonic() < until, "the key is still good"
            assert (answer[0], answer[1]["code"]) == (401, "invalid_credentials")


def test_a_key_that_is_in_use_ends_when_it_expires(zone: LiveZone) -> None:
    """Each process has the key in its cache when it expires."""
    zone.create_stream("orders")
    ends = datetime.now(UTC) + timedelta(seconds=2)
    key = zone.key("emit:*", expires_at=ends.isoformat())
    with Emitter(zone, web=0, key=key) as one, Emitter(zone, web=1, key=key) as two:
        until = time.monotonic() + 2 + stretched(EFFECTIVE_S + MEASURED_S)
        answers = [emitter.post("orders", EVENT) for emitter in (one, two)]
        assert [status for status, _ in answers] == [200, 200]
        while any(status == 200 for status, _ in answers):
            assert time.monotonic() < until, "the key is still good"
            time.sleep(0.02)
            answers = [emitter.post("orders", EVENT) for emitter in (one, two)]
        assert [answer["code"] for _, answer in answers] == ["invalid_credentials"] * 2


async def test_a_client_with_a_refused_credential_says_so_and_stops(zone: LiveZone) -> None:
    """The client retried for ever, because a refused handshake looked like an unreachable hub."""
    zone.create_stream("orders")
    key = zone.key("listen:*")
    zone.revoke(key)
    async with zone.client(key=key) as client:
        with pytest.raises(HubProblem) as caught:
            async with asyncio.timeout(30):
                async for _ in client.listen("orders"):
                    pass
    assert (caught.value.code, caught.value.status) == ("invalid_credentials", 401)


async def test_a_connection_token_works_in_the_url_and_an_api_key_there_is_refused(
    hub: LiveHub, zone: LiveZone
) -> None:
    zone.create_stream("orders")
    token = zone.token()
    async with session(hub, "", url=f"{hub.web[1].ws_url}?access_token={token}") as reader:
        await reader.listen("orders")
        zone.emit("orders", EVENT)
        assert len(await reader.events(1)) == 1
    for wrong in (zone.admin, token[:-2], ""):
        with pytest.raises(InvalidStatus) as caught:
            async with session(hub, "", url=f"{hub.ws_url}?access_token={wrong}"):
                pass
        assert caught.value.response.status_code == 401


async def test_a_token_narrows_its_key_and_never_widens_it(hub: LiveHub, zone: LiveZone) -> None:
    for stream in ("orders.new", "orders.old", "alarms"):
        zone.create_stream(stream)
    key = zone.key("listen:orders.*", "emit:orders.*")
    token = zone.token(key, grants=[{"action": "listen", "streams": "orders.new"}])
    async with session(hub, token) as reader:
        await reader.listen("orders.new")
        for stream in ("orders.old", "alarms"):
            answer = await reader.ask(stream, name="b")
            assert (answer["op"], answer["code"]) == ("error", "forbidden")
    zone.emit("orders.new", EVENT, key=token).refused(403, "forbidden")
    zone.emit("alarms", EVENT, key=key).refused(403, "forbidden")
    wider = {"grants": [{"action": "listen", "streams": "*"}]}
    hub.call("POST", "/v1/connection-tokens", wider, key=key).refused(403, "wider_grant")


async def test_the_end_of_a_token_closes_its_socket(hub: LiveHub, zone: LiveZone) -> None:
    zone.create_stream("orders")
    token = zone.token(lifetime_s=2)
    async with session(hub, token) as reader:
        await reader.listen("orders")
        assert await closed(reader) == (4401, "token_expired")
    zone.emit("orders", EVENT, key=token).refused(401, "token_expired")


async def test_system_shows_the_events_of_ones_own_zone_to_those_who_manage(
    hub: LiveHub,
) -> None:
    mine, theirs = hub.new_zone(), hub.new_zone()
    async with session(hub, mine.admin, web=1) as reader:
        await reader.listen("system", name="s")
        theirs.create_stream("secret")
        mine.create_stream("orders")
        key = theirs.key("emit:*", client="other")
        theirs.revoke(key)
        mine.key("emit:*", client="shop")
        types: list[str] = []
        while not types or types[-1] != "key.created":
            [event] = await reader.events(1)
            assert event["event"]["attributes"]["zone"] == mine.name
            assert event["event"]["domain"] == "eventhub"
            types.append(event["event"]["type"])
        assert types[0] == "stream.created"
        assert await reader.nothing_waits()
    weak = mine.key("listen:*", "emit:*")
    async with session(hub, weak) as reader:
        answer = await reader.ask("system")
        assert (answer["op"], answer["code"]) == ("error", "forbidden")
    mine.emit("system", EVENT).refused(403, "forbidden")


async def test_streams_of_another_zone_are_unknown_to_a_socket(hub: LiveHub) -> None:
    mine, theirs = hub.new_zone(), hub.new_zone()
    theirs.create_stream("orders")
    mine.create_stream("shared")
    theirs.create_stream("shared")
    async with session(hub, mine.admin) as reader:
        answer: dict[str, Any] = await reader.ask("orders")
        assert (answer["op"], answer["code"]) == ("error", "unknown_stream")
        await reader.listen("shared", start="oldest")
        theirs.emit("shared", EVENT)
        mine.emit("shared", {**EVENT, "name": "mine"})
        [event] = await reader.events(1)
        assert (event["sequence"], event["event"]["name"]) == (1, "mine")
        assert await reader.nothing_waits()


def test_no_client_is_named_as_the_source_of_the_hubs_own_events(zone: LiveZone) -> None:
    """It could emit events of the domain `eventhub` that look like the hub's."""
    answer = zone.hub.operate("POST", f"/v1/clients?zone={zone.name}", {"name": "eventhub"})
    problem = answer.refused(403, "forbidden")
    assert problem["position"]["field"] == "name"
    assert {row["event"]["source"] for row in read_all(zone, "system")} == {"eventhub"}
