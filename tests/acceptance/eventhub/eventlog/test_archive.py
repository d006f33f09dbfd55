"""The archive through the public API: archived events are read with the same cursors, and a file is
downloaded unchanged.
"""

import base64
import http.client
import io
import os
import random
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pyarrow.parquet as pq
import pytest

from eventhub.base import limits
from eventhub.celery import app
from eventhub.event import event_pb2
from tests.acceptance import transports
from tests.acceptance.delivery.test_transports_contract import refusal, take
from tests.acceptance.transports import ListenerSpec, Refused, Transport, each_transport
from tests.acceptance.wire import EVENT
from tests.live import Answer, LiveHub, LiveZone
from tests.sink import Sink

LEFT_TIMEOUT_S = 30.0
POLL_S = 0.1
EVENTS = 25
EVENT_BYTES = 1_000_000
MIB = 1024 * 1024
PARQUET = "application/vnd.apache.parquet"


def segments(zone: LiveZone, stream: str) -> list[dict[str, Any]]:
    path = f"/v1/streams/{stream}/segments"
    found: list[dict[str, Any]] = zone.hub.call("GET", path, key=zone.admin).json["items"]
    return found


def archive(zone: LiveZone, stream: str) -> None:
    zone.hub.manage("archive", "run", "--stream", stream)
    assert all(segment["archived"] for segment in segments(zone, stream)[:-1])


class Archived(NamedTuple):
    """A stream of 25 events of which 20 are in the archive only."""

    zone: LiveZone
    stream: str

    def spec(self, start: str = "oldest") -> ListenerSpec:
        return ListenerSpec(self.zone.hub, self.zone.admin, self.stream, start)

    def get(self, path: str, **headers: str) -> Answer:
        path, key = f"/v1/streams/{self.stream}/{path}", headers.pop("key", self.zone.admin)
        return self.zone.hub.call("GET", path, key=key, headers=headers)


def first_file(archived: Archived) -> Path:
    root = Path(archived.zone.hub.env["EVENTHUB_ARCHIVE_URL"])
    return min(root.rglob(f"stream={archived.stream}/*.parquet"))


@pytest.fixture(scope="module")
def archived(hub: LiveHub) -> Archived:
    """Create the stream; tests do not change it."""
    return leave(hub.new_zone())


def leave(zone: LiveZone) -> Archived:
    """Emit, archive, and wait until retention has removed the segments from the database."""
    policy = {"segment_events_max": 10, "archive": True, "retain_events": 1}
    stream = zone.create_stream(f"orders-{zone.name}", **policy)
    sent = [{**EVENT, "attributes": {"n": n}, "body": ["ü" * n]} for n in range(1, EVENTS + 1)]
    assert zone.emit(stream, sent).status == 200
    archive(zone, stream)
    until_s = time.monotonic() + LEFT_TIMEOUT_S
    while [segment["tier"] for segment in segments(zone, stream)][:2] != ["archived"] * 2:
        assert time.monotonic() < until_s, segments(zone, stream)
        time.sleep(POLL_S)
    return Archived(zone, stream)


@each_transport
async def test_archived_events_are_read_by_every_transport(
    archived: Archived, transport: Transport
) -> None:
    delivered = await take(transport, archived.spec(), EVENTS)
    assert [one.sequence for one in delivered] == list(range(1, EVENTS + 1))
    assert [one.event["attributes"]["n"] for one in delivered] == list(range(1, EVENTS + 1))
    assert delivered[6].event["body"] == ["ü" * 7]
    again = await take(transport, archived.spec(delivered[13].cursor), EVENTS - 14)
    assert [one.sequence for one in again] == list(range(15, EVENTS + 1))
    assert again[0].prev == 14
    assert [one.segment for one in again] == [one.segment for one in delivered[14:]]


def test_one_archived_event_is_returned(archived: Archived) -> None:
    answer = archived.get("events/7")
    assert answer.status == 200
    assert (answer.json["sequence"], answer.json["attributes"]) == (7, {"n": 7})


def test_an_archive_slower_than_the_idle_timeout_of_a_transaction(zone: LiveZone) -> None:
    """Reads were done in one transaction, which the database ended while the archive was slow: an
    internal error instead of the archive's. A pipe replaces the manifest: opening it blocks until
    it is written to.
    """
    archived = leave(zone)
    manifest = min(first_file(archived).parent.glob("*.json"))
    manifest.unlink()
    os.mkfifo(manifest)
    answers: list[Answer] = []
    asking = threading.Thread(target=lambda: answers.append(archived.get("events/7")))
    asking.start()
    until_s = time.monotonic() + limits.TRANSACTION_IDLE_S_MAX + 1.0
    while time.monotonic() < until_s and asking.is_alive():
        time.sleep(POLL_S)
    with manifest.open("wb"):
        asking.join(LEFT_TIMEOUT_S)
    [answer] = answers
    answer.refused(503, "archive_unavailable")


async def test_a_damaged_file_is_an_error_and_never_an_empty_page(zone: LiveZone) -> None:
    archived = leave(zone)
    file = first_file(archived)
    good = file.read_bytes()
    file.write_bytes(good[: len(good) // 2])
    refused: Refused = await refusal(transports.history, archived.spec())
    assert refused.code == "archive_damaged"
    problem = str(refused.problem)
    assert segments(zone, archived.stream)[0]["uuid"] in problem
    assert str(file.parents[2]) not in problem
    assert "stream=" not in problem  # no path of the server's, not even a part of it
    file.write_bytes(good)
    assert len(await take(transports.history, archived.spec(), EVENTS)) == EVENTS


def test_an_archived_segment_is_downloaded_unchanged(archived: Archived) -> None:
    [first, *_] = segments(archived.zone, archived.stream)
    token = archived.zone.operator_token()
    answer = archived.get(f"segments/{first['uuid']}/raw", accept=PARQUET, key=token)
    assert (answer.status, answer.headers["content-type"]) == (200, PARQUET)
    assert answer.headers["content-length"] == str(len(answer.body))
    assert answer.body == first_file(archived).read_bytes()
    table = pq.read_table(io.BytesIO(answer.body))
    assert table.column("sequence").to_pylist() == list(range(1, 11))
    bodies = [event_pb2.Event.FromString(payload.as_py()).body for payload in table["payload"]]
    assert bodies[6] == '["üüüüüüü"]'.encode()


def test_the_download_of_an_altered_file_is_cut_short(zone: LiveZone) -> None:
    archived = leave(zone)
    file, good = first_file(archived), first_file(archived).read_bytes()
    file.write_bytes(good[:200] + bytes(byte ^ 255 for byte in good[200:203]) + good[203:])
    [first, *_] = segments(zone, archived.stream)
    path = f"/v1/streams/{archived.stream}/segments/{first['uuid']}/raw"
    token = zone.operator_token()
    assert _downloaded(zone.hub.web[0].url, path, token) < len(good)
    file.write_bytes(good)
    assert _downloaded(zone.hub.web[0].url, path, token) == len(good)


def test_a_worker_archives_sealed_segments(zone: LiveZone, sink: Sink) -> None:
    stream = zone.create_stream(f"worked-{zone.name}", segment_events_max=10, archive=True)
    assert zone.emit(stream, [EVENT] * 20).status == 200
    app.send_task("eventlog.archive")  # as the timetable does
    until_s = time.monotonic() + LEFT_TIMEOUT_S
    while not all(segment["archived"] for segment in segments(zone, stream)[:-1]):
        assert time.monotonic() < until_s, segments(zone, stream)
        time.sleep(POLL_S)


@pytest.mark.req("EMC-32")
def test_an_archived_segment_of_50_mb_is_sent_in_constant_memory(
    hub: LiveHub, zone: LiveZone
) -> None:
    stream = zone.create_stream(f"large-{zone.name}", segment_events_max=56, archive=True)
    for _ in range(14):
        sent = [{**EVENT, "body_base64": _body(), "content_type": "x/y"} for _ in range(4)]
        assert zone.emit(stream, sent).status == 200
    archive(zone, stream)
    [segment, _] = segments(zone, stream)
    path = f"/v1/streams/{stream}/segments/{segment['uuid']}/raw"
    web, token = hub.web[0], zone.operator_token()
    assert _downloaded(web.url, f"{path}?", token, MIB) == MIB  # what a first time costs
    before, peak = _resident_bytes(web.pid), 0
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.005):
            peak = max(peak, _resident_bytes(web.pid))

    watching = threading.Thread(target=watch)
    watching.start()
    size = _downloaded(web.url, path, token)
    done.set()
    watching.join()
    assert size > 50 * MIB
    assert peak > 0
    assert peak - before < 10 * MIB, f"{(peak - before) // 1024} KiB more"


def _body() -> str:
    return base64.b64encode(random.randbytes(EVENT_BYTES)).decode()


def _downloaded(url: str, path: str, key: str, at_most: int | None = None) -> int:
    """Return the received bytes of the Parquet file; close the connection after `at_most`."""
    host = urlsplit(url)
    connection = http.client.HTTPConnection(host.hostname or "", host.port, timeout=60)
    try:
        headers = {"authorization": f"Bearer {key}", "accept": PARQUET}
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        assert answer.getheader("content-type") == PARQUET
        size = 0
        while (at_most is None or size < at_most) and (chunk := answer.read(64 * 1024)):
            size += len(chunk)
        return size
    finally:
        connection.close()


def _resident_bytes(pid: int) -> int:
    pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
