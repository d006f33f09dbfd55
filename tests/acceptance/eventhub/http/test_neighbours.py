"""Noisy neighbours: the share that a client gets beside another that takes all it can, counted in
the other's requests and rounds of the event loop, never in milliseconds.
"""

import asyncio
import http.client
import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from psycopg.conninfo import make_conninfo

from delivery.listening.frames import Frame, frames_for
from delivery.listening.pump import SocketPump, SocketWriter
from delivery.listening.services import ListenerServices
from eventhub.access.authorizer import Authorizer
from eventhub.base import limits
from eventhub.base.clock import SystemClock
from eventhub.base.errors import InvalidCredentials
from eventhub.base.fair_queue import Admission, QueueOwner, Slots
from eventhub.event.envelope import DEFAULT_MASK
from eventhub.event.protobuf_codec import encode_fields
from eventhub.eventlog.drafts import Draft
from eventhub.eventlog.log import Log
from eventhub.http.app import Router
from eventhub.http.call import RouteServices
from eventhub.http.messages import Message, Receive, Scope, Send
from eventhub.http.routes import HTTP_ROUTES
from eventhub.types.registry import TypeRegistry
from tests.acceptance.one_process import services_of, socket_services
from tests.acceptance.wire import EVENT, until
from tests.forked import QUICK_PASSWORDS
from tests.live import LiveHub, LiveZone
from tests.live_processes import WebProcess

HOGS = 300  # requests of one client
TIMEOUT_S = 60.0
READERS = 40  # sockets that catch up at once
HISTORY = 2_000
BOMB = b"[" + b"[]," * 80_000 + b"[]]"
NOBODY = {"username": "nobody", "password": "x"}


async def test_an_emit_waits_for_few_of_another_clients_hundreds_of_emits(
    hub: LiveHub, zone: LiveZone
) -> None:
    """Emits were parsed and appended in the order of arrival, so the last one waited for all."""
    zone.create_stream("orders")
    keys = {name: zone.key("emit:*", client=name) for name in ("hog", "victim")}
    answered: list[str] = []

    async def emit(route: Router, name: str) -> None:
        headers = [(b"authorization", f"Bearer {keys[name]}".encode())]
        headers.append((b"content-type", b"application/json"))
        scope = {"method": "POST", "path": "/v1/streams/orders/events", "headers": headers}
        scope["query_string"] = b""
        body = json.dumps(EVENT).encode()

        async def receive() -> Message:
            return {"type": "http.request", "body": body}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                assert message["status"] == 200
                answered.append(name)

        await route(scope, receive, send)

    async with services_of(hub) as services:
        log, authorizer, _, _, types, *_ = services
        slots = Slots(limits.EMIT_SLOTS, limits.EMIT_SLOTS_PER_CLIENT)
        route = Router(
            nowhere, HTTP_ROUTES, RouteServices(log, authorizer, types, "", Admission(slots))
        )
        await emit(route, "victim")  # fills the caches
        await emit(route, "hog")
        answered.clear()
        async with asyncio.timeout(TIMEOUT_S):
            names = ["hog"] * HOGS + ["victim"]
            await asyncio.gather(*(emit(route, name) for name in names))
    before = answered.index("victim")
    assert before <= 2 * limits.EMIT_SLOTS, f"{before} of the other client were answered first"


async def nowhere(scope: Scope, receive: Receive, send: Send) -> None:
    raise AssertionError("no route matches this request")


async def test_a_transaction_has_events_of_every_client(hub: LiveHub, zone: LiveZone) -> None:
    """The last arrival was appended last, even a single event."""
    zone.create_stream("orders")
    [[stream]] = hub.sql(
        "SELECT s.id FROM streams s JOIN zones z ON z.id = s.zone_id WHERE z.name = %s", zone.name
    )
    payload = encode_fields({"domain": "shop", "type": "order.placed"})
    answered: list[int] = []
    async with Log.open(database_url=hub.database_url) as log:

        async def append(client_id: int, events: int) -> None:
            draft = Draft(stream, DEFAULT_MASK, payload, None)
            await log.append([draft] * events, None, QueueOwner(1, client_id))
            answered.append(client_id)

        async with asyncio.timeout(TIMEOUT_S):
            hogs = (append(1, limits.APPEND_EVENTS_MAX // 4) for _ in range(20))
            await asyncio.gather(*hogs, append(2, 1))
    assert answered.index(2) <= 4, answered


class Socket:
    """A pump whose socket accepts every frame at once; each event adds the socket's name to
    `receivers`, which all sockets share.
    """

    def __init__(self, name: str, receivers: list[str]) -> None:
        self.name = name
        self._receivers = receivers
        self.pump: SocketPump
        self.running: asyncio.Task[None]

    async def _send(self, frames: list[Frame]) -> None:
        self._receivers.extend(
            self.name for frame in frames if b'"op":"event"' in _bytes(frame)[:20]
        )

    async def open(self, services: ListenerServices, key: str) -> "Socket":
        principal = await services.authorizer.authenticate(key)
        writer = SocketWriter(frames_for(None), self._send)
        self.pump = SocketPump(socket_services(services), writer, key, principal)
        self.running = asyncio.create_task(self.pump.run())
        return self

    async def listen(self, stream: str) -> None:
        listen = {"op": "listen", "listener": "a", "stream": stream, "from": "oldest"}
        await self.pump.handle(json.dumps(listen))

    async def close(self) -> None:
        self.running.cancel()
        await asyncio.gather(self.running, return_exceptions=True)
        await self.pump.close()


def _bytes(frame: Frame) -> bytes:
    return frame.encode() if isinstance(frame, str) else frame


async def test_sockets_that_catch_up_share_the_event_loop_fairly(
    hub: LiveHub, zone: LiveZone
) -> None:
    """Each socket had a time slice in every round of the event loop, so all other work of the
    process waited for all of them; and a client with one socket had one slice in as many as the
    other had sockets.
    """
    zone.create_stream("orders")
    for _ in range(HISTORY // limits.BATCH_EVENTS_MAX):
        assert zone.emit("orders", [EVENT] * limits.BATCH_EVENTS_MAX).status == 200
    keys = {name: zone.key("listen:*", client=name) for name in ("hog", "victim")}
    receivers: list[str] = []
    rounds: list[int] = []

    async def count_rounds() -> None:
        while True:
            before = len(receivers)
            await asyncio.sleep(0)
            rounds.append(len(receivers) - before)

    async with services_of(hub) as services:
        opened = [Socket("hog", receivers) for _ in range(READERS)]
        sockets = [await each.open(services, keys["hog"]) for each in opened]
        victim = await Socket("victim", receivers).open(services, keys["victim"])
        counting = asyncio.create_task(count_rounds())
        try:
            async with asyncio.timeout(TIMEOUT_S):
                await asyncio.gather(*(each.listen("orders") for each in sockets))
                at = len(receivers)
                await victim.listen("orders")
                await until(lambda: receivers.count("victim") >= HISTORY)
        finally:
            counting.cancel()
            for each in (*sockets, victim):
                await each.close()
    last = len(receivers) - 1 - receivers[::-1].index("victim")
    of_others = receivers[at:last].count("hog")
    assert max(rounds) <= 4 * limits.CATCH_UP_SLICES * limits.FRAMES_PER_SLICE_MAX
    assert of_others <= READERS * HISTORY / 4, f"{of_others} events went to the other client"


def log_in(web: WebProcess, body: bytes, address: str) -> tuple[int, str]:
    """Log in from a loopback address; return the status and the code of the answer."""
    port = web.port
    opened = http.client.HTTPConnection("127.0.0.1", port, timeout=60, source_address=(address, 0))
    try:
        opened.request("POST", "/v1/session", body, {"Content-Type": "application/json"})
        answer = opened.getresponse()
        return answer.status, json.loads(answer.read())["code"]
    finally:
        opened.close()


@pytest.fixture
def hashing(hub: LiveHub, tmp_path: Path) -> Iterator[WebProcess]:
    """Yield one more web process of the hub, which hashes passwords for as long as is usual."""
    env = {name: value for name, value in hub.env.items() if name != QUICK_PASSWORDS}
    web = WebProcess("hashing", env, tmp_path / "web.log")
    web.start()
    try:
        yield web
    finally:
        web.stop()


def test_failed_logins_hold_no_connection_of_the_management_api(
    hub: LiveHub, zone: LiveZone, hashing: WebProcess
) -> None:
    """Each held one while its password was hashed; other requests waited for all, or got 503."""
    wrong = json.dumps(NOBODY).encode()
    addresses = [f"127.0.1.{number % 4 + 1}" for number in range(8)]
    counted = "SELECT count(*) FROM login_attempts WHERE subject LIKE 'user:nobody@127.0.1.%%'"
    finished: list[int] = []
    with ThreadPoolExecutor(len(addresses)) as pool:
        logins = [pool.submit(log_in, hashing, wrong, address) for address in addresses]
        while hub.sql(counted)[0][0] < 4:
            pass  # until the logins are in progress
        before = sum(login.done() for login in logins)
        for _ in range(3):
            answer = hub.call("GET", "/v1/streams", key=zone.admin, url=hashing.url)
            assert answer.status == 200
            finished.append(sum(login.done() for login in logins) - before)
    assert {login.result() for login in logins} == {(401, "invalid_login")}
    assert finished[-1] <= 2, f"of 8 logins, finished at each answer: {finished}"


def test_the_body_of_a_login_is_bounded_and_each_attempt_is_counted(hub: LiveHub) -> None:
    """240 KB of JSON were parsed before authentication, without a limit of attempts."""
    address = "127.0.2.1"
    for _ in range(limits.LOGIN_ATTEMPTS_PER_ADDRESS_MAX):
        assert log_in(hub.web[0], BOMB, address) == (413, "body_too_large")
    assert log_in(hub.web[0], b"{}", address) == (429, "too_many_requests")
    assert log_in(hub.web[0], b"{", "127.0.2.2") == (400, "malformed_json")
    headers = {"Content-Type": "application/json"}
    for path in ("/v1/registrations", "/v1/clients"):
        hub.call("POST", path, BOMB, headers=headers).refused(401, "unauthenticated")
    hub.call("POST", "/v1/nowhere", BOMB, headers=headers).refused(404, "not_found")


@pytest.mark.timeout(60)
async def test_many_requests_with_one_wrong_key_do_not_block_the_process(
    hub: LiveHub, zone: LiveZone
) -> None:
    """A request in the same round of the event loop as a failed look-up polled for its result for
    ever, and the process answered no more requests.
    """
    wrong = f"{zone.admin[:-6]}{zone.admin[-6:].swapcase()[::-1]}"

    async def ask(authorizer: Authorizer) -> None:
        for _ in range(3):
            with pytest.raises(InvalidCredentials):
                await authorizer.authenticate(wrong)

    async with services_of(hub) as services, asyncio.TaskGroup() as requests:
        for _ in range(1_000):
            requests.create_task(ask(services.authorizer))
            await asyncio.sleep(0)


async def test_a_busy_database_is_reported_as_busy_and_not_as_unavailable(
    hub: LiveHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twelve concurrent look-ups, in a database that answers two in 0.4 s; the timeout is 1 s."""
    monkeypatch.setattr(limits, "READ_TIMEOUT_S_MAX", 1.0)
    hub.sql("CREATE SCHEMA IF NOT EXISTS slow")
    hub.sql(
        "CREATE OR REPLACE VIEW slow.api_keys AS WITH waited AS MATERIALIZED (SELECT pg_sleep(0.4))"
        " SELECT k.* FROM public.api_keys k WHERE EXISTS (SELECT FROM waited)"
    )
    answers: list[tuple[int, dict[str, Any]]] = []

    async def emit(route: Router, number: int) -> None:
        key = f"ehk_{number:012}_{'x' * 43}"
        headers = [(b"authorization", f"Bearer {key}".encode())]
        scope = {"method": "POST", "path": "/v1/streams/orders/events", "headers": headers}
        scope["query_string"] = b""
        status = 0

        async def receive() -> Message:
            return {"type": "http.request", "body": b"{}"}

        async def send(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            if message["type"] == "http.response.body" and message["body"]:
                answers.append((status, json.loads(message["body"])))

        await route(scope, receive, send)

    url = make_conninfo(hub.database_url, options="-c search_path=slow,public")
    async with Log.open(database_url=url) as log:
        authorizer = Authorizer(log, secret="of this process", clock=SystemClock())
        route = Router(
            nowhere,
            HTTP_ROUTES,
            RouteServices(log, authorizer, TypeRegistry(log), "", Admission(Slots(64, 16))),
        )
        await asyncio.gather(*(emit(route, number) for number in range(12)))
    hub.sql("DROP SCHEMA slow CASCADE")
    codes = Counter((status, problem["code"]) for status, problem in answers)
    assert codes.keys() == {(401, "invalid_credentials"), (503, "database_busy")}
    assert sum(codes.values()) == 12
