"""Emits that repeat the head of an earlier request on their connection: their answers are those of
other emits.
"""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http.client import parse_headers
from io import BytesIO
from typing import Any, NamedTuple

import pytest

from tests.acceptance.wire import EVENT, HEAR_TIMEOUT_S
from tests.live import LiveZone

BODY = json.dumps(EVENT).encode()


class Answer(NamedTuple):
    """One answer as it came."""

    status: int
    headers: dict[str, str]
    body: Any


class Connection(NamedTuple):
    """One connection to the hub, and the head of its emits up to the length of their bodies."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    head: bytes

    def request(self, body: bytes = BODY, more: str = "") -> bytes:
        return self.head + b"Content-Length: %d\r\n%b\r\n%b" % (len(body), more.encode(), body)

    async def answer(self) -> Answer:
        async with asyncio.timeout(HEAR_TIMEOUT_S):
            head = await self.reader.readuntil(b"\r\n\r\n")
            line, _, rest = head.partition(b"\r\n")
            headers = {name.lower(): value for name, value in parse_headers(BytesIO(rest)).items()}
            body = await self.reader.readexactly(int(headers["content-length"]))
        return Answer(int(line.split()[1]), headers, json.loads(body))

    async def emit(self, body: bytes = BODY) -> Answer:
        self.writer.write(self.request(body))
        return await self.answer()


async def connect(zone: LiveZone, key: str = "", stream: str = "orders") -> Connection:
    reader, writer = await asyncio.open_connection("127.0.0.1", zone.hub.web[0].port)
    head = (
        f"POST /v1/streams/{stream}/events HTTP/1.1\r\nHost: localhost\r\n"
        f"Authorization: Bearer {key or zone.admin}\r\nContent-Type: application/json\r\n"
    )
    return Connection(reader, writer, head.encode())


def counted(zone: LiveZone) -> float:
    """Return how many emits the hub has counted as successful."""
    labels = 'route="/v1/streams/{stream}/events",status="200"'
    return metric(zone, "eventhub_http_requests", labels)


def counted_quick(zone: LiveZone) -> float:
    """Return how many of them repeated the head of one before."""
    return metric(zone, "eventhub_quick_emits")


def metric(zone: LiveZone, name: str, labels: str = "") -> float:
    lines = zone.hub.call("GET", "/metrics").body.decode().splitlines()
    found = [line for line in lines if line.startswith(name) and labels in line]
    return float(found[0].split()[-1]) if found else 0.0


@pytest.mark.parametrize("durability", ["sync", "async", "transient"])
async def test_answers_are_those_of_other_emits(zone: LiveZone, durability: str) -> None:
    zone.create_stream("orders", durability=durability)
    connection, before, quick = await connect(zone), counted(zone), counted_quick(zone)
    first, second = await connection.emit(), await connection.emit()
    batch = await connection.emit(json.dumps([EVENT] * 3).encode())
    [given] = first.body["ranges"]
    assert second.body == {**first.body, "ranges": [{**given, "first": 2, "last": 2}]}
    assert batch.body == {**first.body, "ranges": [{**given, "first": 3, "last": 5}]}
    for answer, last in ((first, 1), (second, 2), (batch, 5)):
        assert answer.status == 200
        assert answer.headers.keys() == first.headers.keys()
        assert answer.headers["eventhub-sequence"] == str(last)
        assert answer.headers["content-type"] == "application/json"
    ids = {answer.headers["x-request-id"] for answer in (first, second, batch)}
    assert len(ids) == 3
    assert counted(zone) == before + 3
    assert counted_quick(zone) == quick + 2  # all but the first
    connection.writer.close()


async def test_errors_are_problem_documents_with_the_position(zone: LiveZone) -> None:
    zone.create_stream("orders")
    connection = await connect(zone)
    await connection.emit()
    for body, code in (
        (b"{", "malformed_json"),
        (b"[]", "empty_batch"),
        (json.dumps({**EVENT, "colour": 1}).encode(), "unknown_field"),
        (json.dumps([EVENT, {**EVENT, "mask": 0}]).encode(), "invalid_mask"),
    ):
        refused = await connection.emit(body)
        assert (refused.status, refused.body["code"]) == (400, code)
        assert refused.headers["content-type"] == "application/problem+json"
        assert refused.headers["eventhub-sequence"] == "1"
    assert (await connection.emit()).body["ranges"][0]["first"] == 2
    connection.writer.close()


async def test_requests_that_do_not_wait_are_answered_in_order(zone: LiveZone) -> None:
    zone.create_stream("orders")
    connection = await connect(zone)
    await connection.emit()
    for _ in range(20):
        connection.writer.write(connection.request())
        await asyncio.sleep(0)  # a write of its own
        connection.writer.write(connection.request() + connection.request(b"{"))
        connection.writer.write(connection.request(more="Accept: */*\r\n"))
    answers = [await connection.answer() for _ in range(80)]
    assert [answer.status for answer in answers] == [200, 200, 400, 200] * 20
    stored = [answer.body["ranges"][0]["first"] for answer in answers if answer.status == 200]
    assert stored == [*range(2, 62)]
    connection.writer.close()


async def test_a_body_may_come_in_parts_after_a_known_head(zone: LiveZone) -> None:
    zone.create_stream("orders")
    connection = await connect(zone)
    for number in range(1, 4):
        data = connection.request()
        for part in (data[:40], data[40:-9], data[-9:]):
            connection.writer.write(part)
            await connection.writer.drain()
        assert (await connection.answer()).body["ranges"][0]["first"] == number
    connection.writer.close()


async def test_a_revoked_key_is_refused_on_an_open_connection(zone: LiveZone) -> None:
    zone.create_stream("orders")
    key = zone.key("emit:orders", client="producer")
    connection = await connect(zone, key)
    for _ in range(3):
        assert (await connection.emit()).status == 200
    zone.revoke(key)
    async with asyncio.timeout(HEAR_TIMEOUT_S):
        while (answer := await connection.emit()).status == 200:
            pass
    assert (answer.status, answer.body["code"]) == (401, "invalid_credentials")
    connection.writer.close()


async def test_the_date_of_answers_follows_the_clock(zone: LiveZone) -> None:
    zone.create_stream("orders")
    emitter = await connect(zone)
    answers = [await emitter.emit()]  # an ordinary one; the others are quick
    async with asyncio.timeout(HEAR_TIMEOUT_S):
        while answers[-1].headers["date"] == answers[0].headers["date"]:
            answers.append(await emitter.emit())
    first, last = (parsedate_to_datetime(answers[at].headers["date"]) for at in (0, -1))
    assert first < last <= datetime.now(UTC) < last + timedelta(seconds=5)
    emitter.writer.close()
