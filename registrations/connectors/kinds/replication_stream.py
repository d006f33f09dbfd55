"""PostgreSQL's protocol of streaming replication, which psycopg has no functions for, over the
libpq that it brings: starts the stream of a slot, reads its messages, confirms a position.
SQL module.

Described at https://www.postgresql.org/docs/current/protocol-replication.html
"""

import asyncio
import struct
import time
from collections.abc import Iterator
from typing import NamedTuple

import psycopg
from psycopg import sql
from psycopg.pq import ExecStatus

from eventhub.base import limits
from eventhub.postgresql.connections import Connection
from registrations.connectors.kinds.pgoutput import lsn_text

_POSTGRESQL_EPOCH_S = 946_684_800  # 2000-01-01


class WalData(NamedTuple):
    """A piece of the stream: a message of the plugin (empty: a keepalive), and how far the server
    has sent.
    """

    message: bytes
    sent: int


class ReplicationStream:
    """The stream of a slot on a connection with `replication=database`, used for nothing else."""

    def __init__(self, connection: Connection) -> None:
        self._pgconn = connection.pgconn
        self._confirmed = 0
        self._confirmed_at_s = 0.0
        self._must_answer = False

    async def start(self, slot: str, publication: str, position: int) -> None:
        """Start at a position. Raises psycopg.Error."""
        command = sql.SQL(
            "START_REPLICATION SLOT {} LOGICAL {} (proto_version '1', publication_names {})"
        ).format(
            sql.Identifier(slot),
            sql.SQL(lsn_text(position)),
            sql.Literal(f'"{publication}"'),
        )
        self._pgconn.send_query(command.as_bytes())
        self._pgconn.flush()
        async with asyncio.timeout(limits.CONNECTOR_STATEMENT_S_MAX):
            while self._pgconn.is_busy():
                await self._readable()
        self._require_streaming()
        self._confirmed = position

    async def arrived(self, seconds: float) -> bool:
        """Wait for data, at most so long; return whether there is some. Raises psycopg.Error."""
        try:
            async with asyncio.timeout(seconds):
                await self._readable()
        except TimeoutError:
            return False
        return True

    def pieces(self) -> Iterator[WalData]:
        """Yield what has arrived. Raises psycopg.Error at the end of the stream."""
        while True:
            size, data = self._pgconn.get_copy_data(1)
            if size == 0:
                self._pgconn.consume_input()  # which does not wait
                size, data = self._pgconn.get_copy_data(1)
            if size == 0:
                return
            if size < 0:
                self._require_streaming()
                raise psycopg.OperationalError("the server ended the stream")
            piece = bytes(data)
            if piece[:1] == b"w":
                [sent] = struct.unpack_from(">Q", piece, 9)
                yield WalData(piece[25:], sent)
            elif piece[:1] == b"k":
                sent, _, must_answer = struct.unpack_from(">QQB", piece, 1)
                self._must_answer = self._must_answer or bool(must_answer)
                yield WalData(b"", sent)

    def confirm(self, position: int) -> None:
        """Tell the server that everything up to a position is stored here: now and then, and when
        it asks.
        """
        due_s = self._confirmed_at_s + limits.CONNECTOR_CONFIRM_S
        if not self._must_answer and time.monotonic() < due_s:
            return
        self._must_answer = False
        self._confirmed_at_s = time.monotonic()
        self._confirmed = max(position, self._confirmed)
        now_us = int((time.time() - _POSTGRESQL_EPOCH_S) * 1_000_000)
        status = struct.pack(">cQQQQB", b"r", *[self._confirmed] * 3, now_us, 0)
        self._pgconn.put_copy_data(status)
        self._pgconn.flush()

    async def _readable(self) -> None:
        loop = asyncio.get_running_loop()
        readable = asyncio.Event()
        descriptor = self._pgconn.socket
        loop.add_reader(descriptor, readable.set)
        try:
            await readable.wait()
        finally:
            loop.remove_reader(descriptor)
        self._pgconn.consume_input()

    def _require_streaming(self) -> None:
        """Raise what the server answered, unless it streams."""
        result = self._pgconn.get_result()
        if result is None or result.status == ExecStatus.COPY_BOTH:
            return
        if result.status == ExecStatus.FATAL_ERROR:
            raise psycopg.errors.error_from_result(result, encoding="utf-8")
