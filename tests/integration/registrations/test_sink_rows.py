"""Sinks of tables at servers that are no database of PostgreSQL."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from registrations.endpoints.addresses import parse_allowed
from registrations.sinks import postgresql
from registrations.sinks.kind import SinkEvent, SinkFault, SinkSpec
from registrations.sinks.postgresql import TableSettings

READY = b"R" + struct.pack("!II", 8, 0) + b"Z" + struct.pack("!I", 5) + b"I"
CHUNK = bytes(1024 * 1024)
AUTHENTICATION = {"username": "hub", "password": "a-hidden-word"}


@asynccontextmanager
async def endless_server() -> AsyncIterator[int]:
    """Yield the port of a server that answers each statement with a row that does not end."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readexactly(8)  # asks for TLS
            writer.write(b"N")
            await reader.read(1024)  # the start of the session
            writer.write(READY)
            await reader.read(1024)  # a statement
            writer.write(b"D" + struct.pack("!I", 1 << 30))
            while True:
                writer.write(CHUNK)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def resolve(host: str) -> list[tuple[Any, ...]]:
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0))]


def spec(url: str, *allowed: str) -> SinkSpec:
    addresses = parse_allowed(allowed).of_zone("default")

    async def http(request: Any) -> Any:
        raise AssertionError

    settings = TableSettings(table="events")
    return SinkSpec(http, resolve, url, settings, AUTHENTICATION, addresses, 10.0)


async def test_an_answer_without_end_is_cut() -> None:
    """libpq keeps an answer until it is complete: a gigabyte in some seconds."""
    async with endless_server() as port:
        sink = await postgresql.open_table(spec(f"postgresql://db.example:{port}/x", "db.example"))
        with pytest.raises(SinkFault, match="more than 1,048,576 bytes") as cut:
            await sink.store([SinkEvent("msg_1", b'{"id": "msg_1"}')])
        sink.close()
    assert cut.value.code == "rejected"


async def test_a_name_that_leads_to_a_private_address_is_refused_when_it_is_called() -> None:
    with pytest.raises(SinkFault) as refused:
        await postgresql.open_table(spec("postgresql://db.example/x"))
    assert refused.value.code == "refused_address"
