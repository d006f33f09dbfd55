"""Several requests on one connection, whole, in pieces and one behind the other: each gets its own
answer, in order.
"""

import asyncio
import json
from http.client import parse_headers
from io import BytesIO
from typing import Any, NamedTuple

from tests.acceptance.wire import EVENT, HEAR_TIMEOUT_S
from tests.live import LiveZone


class Answered(NamedTuple):
    status: int
    body: Any


class Stand(NamedTuple):
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

    async def answer(self) -> Answered:
        """The next answer, whose length is announced."""
        async with asyncio.timeout(HEAR_TIMEOUT_S):
            head = await self.reader.readuntil(b"\r\n\r\n")
            line, _, rest = head.partition(b"\r\n")
            length = int(parse_headers(BytesIO(rest)).get("content-length", "0"))
            body = await self.reader.readexactly(length)
        return Answered(int(line.split()[1]), json.loads(body) if body else None)


async def stand(zone: LiveZone) -> Stand:
    zone.create_stream("orders")
    reader, writer = await asyncio.open_connection("127.0.0.1", zone.hub.web[0].port)
    return Stand(reader, writer, zone.admin)


def _numbers(answers: list[Answered]) -> list[int]:
    return [answer.body["ranges"][0]["first"] for answer in answers]


async def test_requests_that_come_together_are_answered_in_order(zone: LiveZone) -> None:
    caller = await stand(zone)
    wrong = caller.emit(body=b"{")
    caller.writer.write(caller.emit() + wrong + caller.emit() + caller.request("GET /v1/streams"))
    first, refused, second, listed = [await caller.answer() for _ in range(4)]
    assert (first.status, refused.status, second.status, listed.status) == (200, 400, 200, 200)
    assert _numbers([first, second]) == [1, 2]
    assert refused.body["code"] == "malformed_json"
    assert [stream["name"] for stream in listed.body["items"]] == ["orders", "system"]
    caller.writer.close()


async def test_a_request_in_pieces_behind_a_whole_one_is_waited_for(zone: LiveZone) -> None:
    caller = await stand(zone)
    data = caller.emit()
    caller.writer.write(data + data[:-5])
    whole = await caller.answer()
    await caller.writer.drain()
    caller.writer.write(data[-5:] + data)
    answers = [whole, await caller.answer(), await caller.answer()]
    assert _numbers(answers) == [1, 2, 3]
    caller.writer.close()


async def test_who_asks_whether_to_go_on_is_told_before_the_body(zone: LiveZone) -> None:
    caller = await stand(zone)
    data = caller.emit("Expect: 100-continue")
    head, _, body = data.partition(b"\r\n\r\n")
    caller.writer.write(head + b"\r\n\r\n")
    assert (await caller.answer()).status == 100
    caller.writer.write(body)
    assert _numbers([await caller.answer()]) == [1]
    caller.writer.close()


async def test_the_last_answer_of_a_connection_comes_whole_before_its_end(zone: LiveZone) -> None:
    caller = await stand(zone)
    caller.writer.write(caller.emit() + caller.emit("Connection: close"))
    assert _numbers([await caller.answer(), await caller.answer()]) == [1, 2]
    async with asyncio.timeout(HEAR_TIMEOUT_S):
        assert await caller.reader.read() == b""
    caller.writer.close()
