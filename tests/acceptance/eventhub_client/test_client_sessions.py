"""Consumer sessions through the client library, against the running hub."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing

import aiohttp
import psycopg
import pytest
from eventhub_client import sessions
from eventhub_client.errors import Missing, NotAllowed
from eventhub_client.remote import HubClient
from eventhub_client.sync import SyncHubClient
from eventhub_client.types import Delivered, SessionEnded

from eventhub.base import limits
from tests.acceptance.consumers import change, consumer, create_session
from tests.acceptance.cut import way
from tests.acceptance.wire import EVENT, numbered, session, until
from tests.live import LiveHub, LiveZone

WAIT_S = 30.0


@pytest.fixture
def orders(zone: LiveZone) -> LiveZone:
    zone.create_stream("orders")
    return zone


async def take(items: AsyncIterator[Delivered], count: int) -> list[int]:
    """Return the sequences of the next events; the session stays connected."""
    async with asyncio.timeout(WAIT_S):
        return [(await anext(items)).sequence for _ in range(count)]


async def test_a_session_connects_again_and_gets_what_it_did_not_acknowledge(
    hub: LiveHub, orders: LiveZone
) -> None:
    consumer(orders, order="priority")
    orders.emit("orders", [*numbered(1, 3), {**EVENT, "priority": 5}])
    async with (
        way(hub) as between,
        HubClient(between.url, orders.admin) as client,
        client.session("s", window=3) as session,
        aclosing(aiter(session)) as events,  # type: ignore[type-var]
    ):
        async with asyncio.timeout(WAIT_S):
            first = await anext(events)
        assert (first.sequence, first.stream) == (4, "orders")
        assert await take(events, 2) == [1, 2]
        await session.acknowledge(first, stored=True)
        assert await take(events, 1) == [3]
        await between.cut()
        with pytest.raises(ConnectionError):
            await session.acknowledge(first, stored=True)
        await between.mend()
        assert await take(events, 3) == [1, 2, 3]


async def test_a_session_over_server_sent_events_connects_again(
    hub: LiveHub, orders: LiveZone
) -> None:
    """Acknowledgements are requests, so they do not depend on the connection."""
    consumer(orders, window=2)
    orders.emit("orders", numbered(1, 4))
    async with (
        way(hub) as between,
        HubClient(between.url, orders.admin) as client,
        client.session("s", transport="sse") as session,
        aclosing(aiter(session)) as events,  # type: ignore[type-var]
    ):
        async with asyncio.timeout(WAIT_S):
            first = await anext(events)
        assert await take(events, 1) == [2]
        await session.acknowledge(first)
        async with asyncio.timeout(WAIT_S):
            third = await anext(events)
        await between.cut()
        await between.mend()
        assert await take(events, 2) == [2, 3]
        await session.nak(third)
        assert await take(events, 1) == [3]
        await session.acknowledge(third, through=True)
        assert await take(events, 1) == [4]
    async with orders.client() as client:
        with pytest.raises(Missing, match="unknown_session"):
            async with client.session("none", transport="sse") as session:
                await take(aiter(session), 1)
        with pytest.raises(ValueError, match="window"):
            client.session("s", transport="sse", window=5)


async def test_an_acknowledgement_may_include_the_events_before(
    hub: LiveHub, orders: LiveZone
) -> None:
    consumer(orders)
    orders.emit("orders", numbered(1, 4))
    async with orders.client() as client:
        async with client.session("s") as session, asyncio.timeout(WAIT_S):
            found = []
            async for event in session:
                found.append(event)
                if len(found) == 4:
                    break
            await session.acknowledge(found[2], through=True, stored=True)
        async with client.session("s") as session, asyncio.timeout(WAIT_S):
            async for event in session:
                assert event.sequence == 4
                break


async def test_the_end_of_a_session_is_raised_with_its_reason(
    hub: LiveHub, orders: LiveZone
) -> None:
    made = consumer(orders)
    orders.emit("orders", EVENT)
    async with orders.client() as client, client.session("s") as session:
        events = aiter(session)
        assert await take(events, 1) == [1]
        change(orders, made, disconnected=True)
        with pytest.raises(SessionEnded) as ended:
            await take(events, 1)
        assert ended.value.reason == "request"


async def test_a_session_that_does_not_exist_or_is_no_consumer_is_refused(
    hub: LiveHub, orders: LiveZone
) -> None:
    create_session(orders, "a", kind="admin")
    for name, problem in (("nobody", Missing), ("a", NotAllowed)):
        async with orders.client() as client, client.session(name) as session:
            with pytest.raises(problem):
                await take(aiter(session), 1)


async def test_a_client_acts_as_a_supplier_session(hub: LiveHub, orders: LiveZone) -> None:
    supplies = [{"domain": "shop", "type": "order.*"}]
    create_session(orders, "till", kind="supplier", supplies=supplies)
    async with HubClient(hub.url, orders.admin, acting_as="till") as client:
        receipt = await client.emit("orders", EVENT)
        assert receipt.cursor.sequence == 1
        with pytest.raises(Exception, match="type_not_supplied"):
            await client.emit("orders", {**EVENT, "type": "refund"})


def test_the_synchronous_client_has_sessions(hub: LiveHub, orders: LiveZone) -> None:
    consumer(orders)
    orders.emit("orders", numbered(1, 2))
    with SyncHubClient(hub.url, orders.admin) as client:
        with client.session("s") as session:
            for event in session:
                session.acknowledge(event, stored=True)
                if event.sequence == 2:
                    break
        assert client.event("orders", 2)["attributes"] == {"n": 2}


async def test_a_session_is_pulled_and_acknowledges_the_last_batch(
    hub: LiveHub, orders: LiveZone
) -> None:
    consumer(orders)
    orders.emit("orders", numbered(1, 4))
    async with HubClient(hub.url, orders.admin) as client:
        session = client.session("s")
        first = await session.pull(3, wait_s=WAIT_S)
        assert [(one.sequence, one.stream, one.attempt) for one in first] == [
            (number, "orders", 1) for number in (1, 2, 3)
        ]
        await session.extend(first[1], visibility_s=0)
        await session.extend(first[2], visibility_s=600)
        again = await session.pull(2, wait_s=WAIT_S, acknowledge=first[:1])
        assert [(one.sequence, one.attempt) for one in again] == [(2, 2), (4, 1)]
        assert await session.pull(0, acknowledge=[first[2], *again]) == []
        with pytest.raises(Missing, match="unknown_session"):
            await client.session("none").pull()


def test_the_synchronous_client_pulls(hub: LiveHub, orders: LiveZone) -> None:
    consumer(orders)
    orders.emit("orders", EVENT)
    with SyncHubClient(hub.url, orders.admin) as client:
        [event] = client.pull("s", wait_s=WAIT_S)
        assert client.pull("s", 0, acknowledge=[event]) == []


async def test_each_socket_of_a_stopping_process_gets_another_pause(
    hub: LiveHub, orders: LiveZone, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that follows the pause comes back by itself, without an error to its caller."""
    consumer(orders)
    waits: list[float | None] = []
    monkeypatch.setattr(sessions, "pause_s", lambda _, wait_s=None: waits.append(wait_s) or 0.05)
    web = hub.web[1]
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(HubClient(web.url, orders.admin))
        session_ = await stack.enter_async_context(client.session("s"))
        events = await stack.enter_async_context(aclosing(aiter(session_)))  # type: ignore[type-var]
        orders.emit("orders", numbered(1, 1))
        assert await take(events, 1) == [1]
        readers = [
            await stack.enter_async_context(session(hub, orders.admin, web=1)) for _ in range(50)
        ]
        try:
            await asyncio.to_thread(web.stop)
        finally:
            await asyncio.to_thread(web.start)
        orders.emit("orders", numbered(2, 2))
        assert await take(events, 2) == [1, 2]
        for reader in readers:
            await reader.socket.wait_closed()
        reasons = [(one.socket.close_code, one.socket.close_reason or "") for one in readers]
    named = [reason.removeprefix("retry_after=") for code, reason in reasons if code == 1012]
    pauses = set(map(float, named))
    assert len(pauses) > 10
    assert 0 <= min(pauses) <= max(pauses) <= 60 / limits.RECONNECTS_PER_S
    assert waits[0] is not None


async def test_a_handshake_that_a_stopping_process_cannot_complete_is_to_be_repeated(
    hub: LiveHub, orders: LiveZone
) -> None:
    """It was answered with 500, so that clients gave up."""
    key = orders.key("listen:*")
    web = hub.web[1]
    url = web.url.replace("http", "ws") + "/v1/ws"
    headers = {"Authorization": f"Bearer {key}"}
    with psycopg.connect(hub.database_url) as holder:
        holder.execute("LOCK TABLE api_keys IN ACCESS EXCLUSIVE MODE")
        connecting = asyncio.create_task(_handshake_status(url, headers))
        await until(lambda: bool(hub.sql("SELECT 1 FROM pg_locks WHERE NOT granted")))
        try:
            await asyncio.to_thread(web.stop)
        finally:
            holder.rollback()
            await asyncio.to_thread(web.start)
    status, after = await connecting
    assert status == 503
    assert 1 <= int(after) <= limits.REFUSED_RECONNECT_S_MAX


async def _handshake_status(url: str, headers: dict[str, str]) -> tuple[int, str]:
    """Return the status and the header Retry-After of a refused handshake."""
    async with aiohttp.ClientSession(headers=headers) as http:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await http.ws_connect(url)
    return refused.value.status, (refused.value.headers or {}).get("Retry-After", "")
