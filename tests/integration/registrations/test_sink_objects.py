"""Objects of a bucket when batches are stored again, as they were or in other parts."""

import json
import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from email.utils import formatdate
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from uuid import UUID

import pytest

from delivery.callbacks.client import HttpClient
from delivery.callbacks.guard import Guard
from delivery.callbacks.sink_store import SinkTarget, send_request
from registrations.endpoints.addresses import parse_allowed
from registrations.sinks import s3
from registrations.sinks.kind import SinkEvent, SinkFault, SinkSpec
from registrations.sinks.s3 import BucketSettings
from tests.s3_server import REGION, Bucket, S3Server, s3_server

SEGMENT = UUID(int=7).hex


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


@pytest.fixture
def bucket(server: S3Server) -> Bucket:
    return server.bucket()


@asynccontextmanager
async def opened(url: str, authentication: dict[str, str]) -> AsyncIterator[s3.BucketSink]:
    settings = BucketSettings(path="", file="ndjson", region=REGION)
    addresses = parse_allowed(["127.0.0.1"])
    client = HttpClient(Guard(addresses))
    target = SinkTarget(1, 1, s3.KIND, url, settings, authentication, "default", 10.0)
    http = partial(send_request, client, target)
    known = addresses.of_zone("default")
    yield await s3.open_bucket(SinkSpec(http, client.resolve, *target[3:6], known, 10.0))
    client.close()


@pytest.fixture
async def sink(bucket: Bucket) -> AsyncIterator[s3.BucketSink]:
    async with opened(bucket.url, bucket.authentication) as sink:
        yield sink


def events(*numbers: int, repeat: bool = False) -> list[SinkEvent]:
    found = []
    for number in numbers:
        id = f"msg_{SEGMENT}_{number}_4"
        document = {"id": id, "stream": "orders", "sequence": number}
        found.append(SinkEvent(id, json.dumps(document).encode(), repeat))
    return found


def parts(bucket: Bucket) -> list[list[int]]:
    found = [data.splitlines() for data in bucket.objects().values()]
    return [[json.loads(line)["sequence"] for line in lines] for lines in found]


@pytest.mark.parametrize(
    ("again", "expected"),
    [
        ([(1, 2, 3)], [[1, 2, 3]]),
        ([(1, 2, 3, 4, 5)], [[1, 2, 3], [4, 5]]),
        ([(1, 2), (3, 4)], [[1, 2], [3, 4]]),  # others of the object are still to be stored
        ([(1,), (2,), (3,)], [[1], [2], [3]]),
    ],
)
async def test_a_batch_that_is_stored_again_in_other_parts_has_each_event_once(
    sink: s3.BucketSink, bucket: Bucket, again: Sequence[tuple[int, ...]], expected: list[list[int]]
) -> None:
    await sink.store(events(1, 2, 3))
    for numbers in again:
        await sink.store(events(*numbers))
    assert parts(bucket) == expected


async def test_an_event_that_is_sent_again_takes_no_other_from_its_object(
    sink: s3.BucketSink, bucket: Bucket
) -> None:
    await sink.store(events(1, 2, 3))
    answer = await sink.store(events(1, repeat=True))
    assert "1 events were there before" in answer.response
    assert parts(bucket) == [[1, 2, 3]]


async def test_an_object_that_is_not_of_the_hub_is_not_touched(
    sink: s3.BucketSink, bucket: Bucket
) -> None:
    name = s3.object_name(events(1)[0].id) + ".ndjson"
    bucket.s3.put_object(Bucket=bucket.name, Key=name, Body=b"mine")
    with pytest.raises(SinkFault, match="another object"):
        await sink.store(events(1))
    assert bucket.objects() == {name: b"mine"}


class Busy(BaseHTTPRequestHandler):
    """A server of S3 that asks its clients to come back at some time."""

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(503)
        self.send_header("Retry-After", formatdate(time.time() + 600, usegmt=True))
        self.send_header("Content-Length", "0")
        self.end_headers()


async def test_a_server_that_is_busy_until_a_date_is_left_alone_until_then() -> None:
    with HTTPServer(("127.0.0.1", 0), Busy) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        key = {"access_key_id": "hub", "secret_access_key": "hub"}
        async with opened(f"http://127.0.0.1:{server.server_port}/events", key) as sink:
            with pytest.raises(SinkFault) as busy:
                await sink.store(events(1))
    assert busy.value.status == 503
    assert 500 < (busy.value.retry_after_s or 0) <= 600
