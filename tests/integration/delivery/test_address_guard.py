"""Connections go to the address that was checked and to no other, for any URL and any answer of a
name server.
"""

import asyncio
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager

import pytest

from delivery.callbacks.body import RequestContent
from delivery.callbacks.client import HttpClient
from delivery.callbacks.guard import Guard
from delivery.callbacks.post import post, target_of
from delivery.callbacks.signatures import signer
from eventhub.base import limits
from registrations.endpoints.addresses import parse_allowed
from tests.address_forms import ADDRESS_FORMS
from tests.busy import stretched
from tests.integration.callbacks_world import OK
from tests.name_server import LOOK_UP_S, SILENCE, NameServer, name_server

# These addresses of loopback stand for public ones; all others are refused.
PUBLIC = ("127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4", "[::ffff:127.0.0.5]")
PRIVATE = "127.9.9.9"


@pytest.fixture(scope="module")
def server() -> Iterator[NameServer]:
    with name_server() as running:
        yield running


@pytest.fixture
def names(server: NameServer) -> NameServer:
    server.forget()
    return server


class Sink:
    """A listener on one port of all addresses of loopback, which counts connections by address."""

    def __init__(self) -> None:
        self.reached: Counter[str] = Counter()
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        address = writer.get_extra_info("sockname")[0]
        self.reached[address.removeprefix("::ffff:")] += 1
        await reader.readuntil(b"\r\n\r\n{}")
        writer.write(OK.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"))
        writer.close()


@asynccontextmanager
async def listening() -> AsyncIterator[Sink]:
    sink = Sink()
    both = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    sink.port = both.getsockname()[1]
    async with await asyncio.start_server(sink.serve, sock=both):
        yield sink


@asynccontextmanager
async def client(allow: Sequence[str] = PUBLIC) -> AsyncIterator[HttpClient]:
    guard = Guard(parse_allowed(allow))
    made = HttpClient(guard)
    try:
        yield made
    finally:
        made.close()
        guard.close()


async def outcome(made: HttpClient, url: str) -> str:
    """Post to a URL as if it had been stored without a check; return the outcome."""
    try:
        target = target_of(url, (signer("v1", bytes(32)),), "z")
    except ValueError:
        return "internal"
    content = RequestContent("content-type: application/json\r\n", b"{}")
    return (await post(made, target, "msg_1", content)).outcome.code


async def test_a_url_of_no_refused_form_opens_a_connection(names: NameServer) -> None:
    """Even if it was stored unchecked: by an older release, or by hand."""
    async with listening() as sink, client(allow=()) as made:
        refused = [form for form in ADDRESS_FORMS if form.code]
        urls = [form.url.format(port=sink.port) for form in refused]
        outcomes = await asyncio.gather(*(outcome(made, url) for url in urls))
    assert sink.reached == {}
    assert set(outcomes) <= {"refused_address", "unknown_host", "internal"}
    assert outcomes.count("refused_address") > 100


async def test_a_name_may_lead_to_a_public_address(names: NameServer) -> None:
    names.answers["a.example"] = [["127.0.0.1"]]
    async with listening() as sink, client() as made:
        assert await outcome(made, f"http://a.example:{sink.port}/") == "delivered"
    assert sink.reached == {"127.0.0.1": 1}


async def test_a_name_that_leads_elsewhere_the_next_time_is_checked_again(
    names: NameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DNS rebinding, with a TTL of 0: each look-up gives another address."""
    monkeypatch.setattr(limits, "CALLBACK_DNS_S_MAX", 0)
    names.answers["rebind.example"] = [["127.0.0.1"], [PRIVATE], ["127.0.0.2"], [PRIVATE]]
    async with listening() as sink, client() as made:
        url = f"http://rebind.example:{sink.port}/"
        outcomes = [await outcome(made, url) for _ in range(4)]
    assert outcomes == ["delivered", "refused_address", "delivered", "refused_address"]
    assert sink.reached == {"127.0.0.1": 1, "127.0.0.2": 1}


async def test_a_connection_looks_its_name_up_once(names: NameServer) -> None:
    """What is checked is what is connected: a second look-up would give the private address."""
    names.answers["rebind.example"] = [["127.0.0.1"], [PRIVATE]]
    async with listening() as sink, client() as made:
        outcomes = [await outcome(made, f"http://rebind.example:{sink.port}/") for _ in range(5)]
    assert outcomes == ["delivered"] * 5
    assert names.asked["rebind.example", "A"] == 1
    assert sink.reached == {"127.0.0.1": 5}


@pytest.mark.parametrize(
    "answer",
    [
        [PRIVATE, "127.0.0.1"],
        ["127.0.0.1", PRIVATE],
        ["::1", "127.0.0.1"],
        ["::ffff:127.9.9.9", "127.0.0.1"],
        ["fd00:ec2::254", "169.254.169.254", "127.0.0.1"],
    ],
)
async def test_of_a_mixed_answer_only_the_public_address_is_connected(
    names: NameServer, answer: list[str]
) -> None:
    names.answers["mixed.example"] = [answer]
    async with listening() as sink, client() as made:
        assert await outcome(made, f"http://mixed.example:{sink.port}/") == "delivered"
    assert sink.reached == {"127.0.0.1": 1}


async def test_of_a_mixed_answer_the_private_address_is_no_second_choice(names: NameServer) -> None:
    """Nothing listens at the public address."""
    names.answers["mixed.example"] = [["127.0.0.1", PRIVATE, "::1"]]
    elsewhere = socket.create_server((PRIVATE, 0))
    with elsewhere:
        port = elsewhere.getsockname()[1]
        async with client() as made:
            found = await outcome(made, f"http://mixed.example:{port}/")
        assert found in ("connection", "refused_address")
        elsewhere.setblocking(False)
        with pytest.raises(BlockingIOError):
            elsewhere.accept()


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ({"a.example": [PRIVATE]}, "refused_address"),
        ({"a.example": ["::1"]}, "refused_address"),
        ({"a.example": ["::ffff:127.9.9.9"]}, "refused_address"),
        ({"a.example": ["64:ff9b::7f09:909"]}, "refused_address"),
        ({"a.example": ["169.254.169.254", "fd00:ec2::254"]}, "refused_address"),
        ({"a.example": ["0.0.0.0", "::"]}, "refused_address"),
        ({"a.example": "b.example", "b.example": [PRIVATE]}, "refused_address"),
        (
            {"a.example": "b.example", "b.example": "c.example", "c.example": "localhost.example",
             "localhost.example": ["::1"]},
            "refused_address",
        ),
        ({"a.example": []}, "unknown_host"),
        ({}, "unknown_host"),
        ({"a.example": ["127.9.9.9"] * 1_000}, "refused_address"),
        ({"a.example": [f"127.9.{n // 250}.{n % 250 + 1}" for n in range(1_000)]},
         "refused_address"),
    ],
    ids=[
        "IPv4", "IPv6", "mapped", "NAT64", "metadata", "unspecified", "CNAME", "chain of CNAMEs",
        "no address", "no such name", "one address 1,000 times", "1,000 addresses",
    ],
)  # fmt: skip
async def test_a_name_that_leads_to_no_public_address_opens_no_connection(
    names: NameServer, answers: dict[str, list[str] | str], expected: str
) -> None:
    names.answers.update({name: [answer] for name, answer in answers.items()})
    async with listening() as sink, client() as made:
        assert await outcome(made, f"http://a.example:{sink.port}/") == expected
    assert sink.reached == {}


async def test_a_chain_of_names_to_a_public_address_is_followed(names: NameServer) -> None:
    names.answers |= {"a.example": ["b.example"], "b.example": [["127.0.0.3"]]}
    async with listening() as sink, client() as made:
        assert await outcome(made, f"http://a.example:{sink.port}/") == "delivered"
    assert sink.reached == {"127.0.0.3": 1}


async def test_an_exception_for_a_name_is_for_that_name_and_not_for_what_leads_to_it(
    names: NameServer,
) -> None:
    names.answers |= {"a.example": ["hooks.internal"], "hooks.internal": [[PRIVATE]]}
    async with listening() as sink, client(allow=("hooks.internal",)) as made:
        assert await outcome(made, f"http://a.example:{sink.port}/") == "refused_address"
        assert sink.reached == {}
        assert await outcome(made, f"http://Hooks.Internal.:{sink.port}/") == "delivered"
    assert sink.reached == {PRIVATE: 1}


async def test_of_thousands_of_addresses_a_few_are_tried(names: NameServer) -> None:
    """All refuse at once, so that in the time of an attempt the hub would try thousands: a scan of
    any network the name server lists. The answer is truncated over UDP.
    """
    names.answers["scan.example"] = [[f"127.{n // 250}.8.{n % 250 + 1}" for n in range(1_000)]]
    farthest = socket.create_server(("127.3.8.250", 0))  # sorted last, by its prefix
    with farthest:
        port = farthest.getsockname()[1]
        async with client(allow=("127.0.0.0/8",)) as made:
            assert await outcome(made, f"http://scan.example:{port}/") == "connection"
        farthest.setblocking(False)
        with pytest.raises(BlockingIOError):
            farthest.accept()
    assert names.protocols == {"udp", "tcp"}


async def test_a_name_server_that_is_silent_ends_the_attempt(names: NameServer) -> None:
    names.answers["silent.example"] = [SILENCE]
    began_s = time.monotonic()
    async with client() as made:
        assert await outcome(made, "http://silent.example:9/") in ("unknown_host", "timeout")
    assert time.monotonic() - began_s < limits.CALLBACK_CONNECT_TIMEOUT_S_MAX + stretched(LOOK_UP_S)
