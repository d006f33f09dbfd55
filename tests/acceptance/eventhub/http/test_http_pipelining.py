"""HTTP pipelining: several requests on one connection, whole or in parts, each get their own
answer, in order.
"""

import asyncio
import json
from http.client import parse_headers
from io import BytesIO
from typing import Any, NamedTuple

import pytest

from tests.acceptance.wire import EVENT, HEAR_TIMEOUT_S
from tests.live import LiveZone


class Response(NamedTuple):
    """The status and the JSON body of one answer."""

    status: int
    body: Any


class Connection(NamedTuple):
    """One connection to the hub, and the key that its requests carry."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    key: str

    def emit(self, *headers: str, body: bytes = json.dumps(EVENT).encode()) -> bytes:
        return self.request("POST /v1/streams/orders/events", *headers, body=body)

    def request(self, line: str, *headers: str, body: bytes = b"") -> bytes:
        lines = (f"{line} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {self.key}")
        more = ("Content-Type: application/json", f"Content-Length: {len(body)}", *headers)
        return "\r\n".join((*lines, *more, "", "")).encode() + body

    async def answer(self) -> Response:
        """Return the next answer; its `Content-Length` is set."""
        async with asyncio.timeout(HEAR_TIMEOUT_S):
            head = await self.reader.readuntil(b"\r\n\r\n")
            line, _, rest = head.partition(b"\r\n")
            length = int(parse_headers(BytesIO(rest)).get("content-length", "0"))
            body = await self.reader.readexactly(length)
        return Response(int(line.split()[1]), json.loads(body) if body else None)


async def connect(zone: LiveZone) -> Connection:
    zone.create_stream("orders")
    reader, writer = await asyncio.open_connection("127.0.0.1", zone.hub.web[0].port)
    return Connection(reader, writer, zone.admin)


def _numbers(answers: list[Response]) -> list[int]:
    return [answer.body["ranges"][0]["first"] for answer in answers]


async def test_requests_sent_together_are_answered_in_order(zone: LiveZone) -> None:
    connection = await connect(zone)
    wrong = connection.emit(body=b"{")
    connection.writer.write(
        connection.emit() + wrong + connection.emit() + connection.request("GET /v1/streams")
    )
    first, refused, second, listed = [await connection.answer() for _ in range(4)]
    assert (first.status, refused.status, second.status, listed.status) == (200, 400, 200, 200)
    assert _numbers([first, second]) == [1, 2]
    assert refused.body["code"] == "malformed_json"
    assert [stream["name"] for stream in listed.body["items"]] == ["orders", "system"]
    connection.writer.close()


async def test_a_partial_request_after_a_whole_one_is_completed_later(zone: LiveZone) -> None:
    connection = await connect(zone)
    data = connection.emit()
    connection.writer.write(data + data[:-5])
    whole = await connection.answer()
    await connection.writer.drain()
    connection.writer.write(data[-5:] + data)
    answers = [whole, await connection.answer(), await connection.answer()]
    assert _numbers(answers) == [1, 2, 3]
    connection.writer.close()


async def test_expect_100_continue_is_answered_before_the_body(zone: LiveZone) -> None:
    connection = await connect(zone)
    data = connection.emit("Expect: 100-continue")
    head, _, body = data.partition(b"\r\n\r\n")
    connection.writer.write(head + b"\r\n\r\n")
    assert (await connection.answer()).status == 100
    connection.writer.write(body)
    assert _numbers([await connection.answer()]) == [1]
    connection.writer.close()


async def test_the_last_answer_arrives_whole_before_the_connection_closes(zone: LiveZone) -> None:
    connection = await connect(zone)
    connection.writer.write(connection.emit() + connection.emit("Connection: close"))
    assert _numbers([await connection.answer(), await connection.answer()]) == [1, 2]
    async with asyncio.timeout(HEAR_TIMEOUT_S):
        assert await connection.reader.read() == b""
    connection.writer.close()


async def test_no_more_requests_are_read_than_can_be_answered(zone: LiveZone) -> None:
    """Regression: after each answer the hub read and parsed as much as the connection held, and one
    client that did not wait for answers filled the memory of the process.
    """
    connection = await connect(zone)
    listed = connection.request("GET /v1/streams") * 1_000
    sent = 0

    async def send() -> None:
        nonlocal sent
        while True:
            connection.writer.write(listed)
            await connection.writer.drain()
            sent += len(listed)

    sending = asyncio.create_task(send())
    for _ in range(60):
        assert (await connection.answer()).status == 200
    sending.cancel()
    assert sent < 8 << 20  # what the sockets hold; it was 40 MB
    connection.writer.transport.abort()


async def test_each_request_is_answered_however_many_wait(zone: LiveZone) -> None:
    connection = await connect(zone)
    large = connection.emit(body=json.dumps([{**EVENT, "body": "x" * 20_000}] * 4).encode())
    requests = [connection.emit(), large, connection.emit(body=b"{"), connection.emit()]
    connection.writer.write(b"".join(requests) * 30)
    answers = [await connection.answer() for _ in range(120)]
    assert [answer.status for answer in answers] == [200, 200, 400, 200] * 30
    stored = _numbers([answer for answer in answers if answer.status == 200])
    assert stored == [first + 6 * turn for turn in range(30) for first in (1, 2, 6)]
    connection.writer.close()


@pytest.mark.parametrize("valid", [1, 3])
async def test_requests_before_an_invalid_one_are_answered_first(
    zone: LiveZone, valid: int
) -> None:
    """Regression: the refusal came first, as if it were the answer to an emit that was stored."""
    connection = await connect(zone)
    connection.writer.write(connection.emit() * valid + b"\x00 is no request\r\n\r\n")
    answers = [await connection.answer() for _ in range(valid + 1)]
    assert [answer.status for answer in answers] == [200] * valid + [400]
    assert answers[-1].body["code"] == "bad_request"
    async with asyncio.timeout(HEAR_TIMEOUT_S):
        assert await connection.reader.read() == b""
    connection.writer.close()


async def test_a_body_that_breaks_off_is_refused_after_the_requests_before_it(
    zone: LiveZone,
) -> None:
    connection = await connect(zone)
    chunked = connection.emit("Transfer-Encoding: chunked").replace(b"Content-Length", b"X-Length")
    broken = chunked.partition(b"\r\n\r\n")[0] + b"\r\n\r\nno length\r\n"
    connection.writer.write(connection.emit() * 2 + broken)
    assert [(await connection.answer()).status for _ in range(3)] == [200, 200, 400]
    connection.writer.close()
