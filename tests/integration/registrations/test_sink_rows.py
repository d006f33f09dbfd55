"""Sinks of tables, and connectors, at servers that are no database of PostgreSQL."""

import socket
import ssl
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from registrations.connectors.errors import ConnectorFault
from registrations.connectors.kinds.kind import InputSpec
from registrations.connectors.kinds.outbox_polling import PollingSettings, open_table
from registrations.endpoints.addresses import parse_allowed
from registrations.sinks import postgresql
from registrations.sinks.kind import SinkEvent, SinkFault, SinkSpec
from registrations.sinks.postgresql import TableSettings
from tests.certificates import Authority

READY = b"R" + struct.pack("!II", 8, 0) + b"Z" + struct.pack("!I", 5) + b"I"
INSERTED = b"1\0\0\0\x042\0\0\0\x04n\0\0\0\x04C\0\0\0\x0fINSERT 0 1\0" + READY[9:]
CLEARTEXT = b"R" + struct.pack("!II", 8, 3)  # asks for the password
CHUNK = bytes(1024 * 1024)
AUTHENTICATION = {"username": "hub", "password": "a-hidden-word"}


@contextmanager
def server_of(
    tls: ssl.SSLContext | None = None,
    *,
    endless: int = 0,
    passwords: list[bytes] | None = None,
) -> Iterator[int]:
    """Yield the port of a server that answers statements as if each had inserted a row, or with so
    many MiB of a row that does not end. With `passwords` it asks for the password in clear, and
    adds what comes.
    """
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                connected, _ = listening.accept()
                connected.settimeout(10)
                with suppress(OSError):
                    answer(connected)
                connected.close()

    def answer(connected: socket.socket) -> None:
        connected.recv(8)  # asks for TLS
        connected.sendall(b"S" if tls else b"N")
        if tls:
            connected = tls.wrap_socket(connected, server_side=True)
        connected.recv(1024)  # the start of the session
        if passwords is not None:
            connected.sendall(CLEARTEXT)
            passwords.append(connected.recv(1024))
        connected.sendall(READY)
        while connected.recv(4096):  # a statement
            connected.sendall(b"D" + struct.pack("!I", 1 << 30) if endless else INSERTED)
            for _ in range(endless):  # the rest never comes
                connected.sendall(CHUNK)

    thread = Thread(target=serve)
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join()


async def resolve(host: str) -> list[tuple[Any, ...]]:
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0))]


def spec(url: str, *allowed: str, **settings: Any) -> SinkSpec:
    addresses = parse_allowed(allowed).of_zone("default")

    async def http(request: Any) -> Any:
        raise AssertionError

    given = TableSettings(table="events", **settings)
    return SinkSpec(http, resolve, url, given, AUTHENTICATION, addresses, 10.0)


async def test_an_answer_without_end_is_cut() -> None:
    """libpq keeps an answer until it is complete: a gigabyte in some seconds."""
    with server_of(endless=64) as port:
        sink = await postgresql.open_table(spec(f"postgresql://db.example:{port}/x", "db.example"))
        with pytest.raises(SinkFault, match="more than 1,048,576 bytes") as cut:
            await sink.store([SinkEvent("msg_1", b'{"id": "msg_1"}')])
        sink.close()
    assert cut.value.code == "rejected"


async def test_an_answer_without_end_to_a_connector_is_cut() -> None:
    with server_of(endless=160) as port:
        url = f"postgresql://hub:word@127.0.0.1:{port}/shop"
        addresses = parse_allowed(["127.0.0.1"]).of_zone("z")
        spec = InputSpec(7, url, PollingSettings("outbox"), addresses)
        with pytest.raises(ConnectorFault) as raised:
            async with open_table(spec):
                pass
    assert raised.value.code == "statement_failed"
    assert "more than 134,217,728 bytes" in raised.value.detail


async def test_a_server_is_verified_by_the_authority_of_the_endpoint(tmp_path: Path) -> None:
    authority = Authority("the client's")
    certificate, key = authority.issue("db.example")
    (tmp_path / "server.pem").write_text(certificate + key)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "server.pem")
    with server_of(tls) as port:
        url = f"postgresql://db.example:{port}/x?sslmode=verify-full"
        sink = await postgresql.open_table(spec(url, "db.example", sslrootcert=authority.pem))
        answer = await sink.store([SinkEvent("msg_1", b'{"id": "msg_1"}')])
        sink.close()
        assert answer.response == "1 inserted, 0 were there before"
        for other in ({}, {"sslrootcert": Authority("another").pem}):
            with pytest.raises(SinkFault, match="certificate"):
                await postgresql.open_table(spec(url, "db.example", **other))


async def test_a_password_is_sent_in_clear_through_tls_alone(tmp_path: Path) -> None:
    certificate, key = Authority("any").issue("db.example")
    (tmp_path / "server.pem").write_text(certificate + key)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "server.pem")
    received: list[bytes] = []
    with server_of(passwords=received) as port:
        url = f"postgresql://db.example:{port}/x"
        with pytest.raises(SinkFault, match=r"add \?sslmode=require"):
            await postgresql.open_table(spec(url, "db.example"))
    assert not any(received)
    with server_of(tls, passwords=received) as port:
        url = f"postgresql://db.example:{port}/x?sslmode=require"
        (await postgresql.open_table(spec(url, "db.example"))).close()
    assert received[-1] == b"p" + struct.pack("!I", 18) + b"a-hidden-word\0"


async def test_a_name_that_leads_to_a_private_address_is_refused_when_it_is_called() -> None:
    with pytest.raises(SinkFault) as refused:
        await postgresql.open_table(spec("postgresql://db.example/x"))
    assert refused.value.code == "refused_address"
