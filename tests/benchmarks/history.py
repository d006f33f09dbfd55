"""A hub's history of any size as the Spark jobs read it, written directly to files: an archive of
sealed segments, and the tables of a run's inputs. Everything was delivered, a few events with a
retry. Always the same for a size.
"""

import hashlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from eventhub.event import event_pb2
from eventhub.event.inbound import JSON, event_mask, parse, stored_bytes
from sparkjobs.job_spec import JobSpec
from sparkjobs.tables import TABLES
from tests.chaos.circle.flow import DEVICES, device_of, event_of

STREAMS = 4
SEGMENT_EVENTS = 100_000
ENDPOINTS = 3
OWED_SHARE = 0.25  # of the events have a registration that matches
RETRIED = 50  # one delivery of so many had an attempt that failed
RATE_PER_S = 10_000  # at which the events were appended
STARTED_US = 1_760_000_000_000_000
CLIENT = "plant"


class History(NamedTuple):
    """The folders of a history, and its counts."""

    folder: Path
    events: int
    asked: int  # devices with a registration, on every stream

    @property
    def archive(self) -> Path:
        return self.folder / "archive"

    @property
    def inputs(self) -> Path:
        return self.folder / "inputs"

    @property
    def segments(self) -> int:
        return max(self.events // SEGMENT_EVENTS, 1)

    def order(self, job: str, params: dict[str, Any], work: str, result: str) -> JobSpec:
        """Return the specification of a job on this history."""
        return JobSpec(
            job=job,
            run=1,
            params=params,
            inputs=str(self.inputs),
            work=work,
            result=result,
            archive_url=self.archive.as_uri(),
            now_us=STARTED_US + self.events * 1_000_000 // RATE_PER_S + 60_000_000,
        )


class Piece(NamedTuple):
    """A segment: a part of one stream."""

    id: int
    stream_id: int
    first: int
    last: int

    @property
    def numbers(self) -> np.ndarray[Any, Any]:
        """The numbers of its events among all: streams alternate with their segments."""
        return (self.id - 1) * SEGMENT_EVENTS + np.arange(self.last - self.first + 1)

    @property
    def times_us(self) -> np.ndarray[Any, Any]:
        return STARTED_US + self.numbers * (1_000_000 // RATE_PER_S)


def make_history(folder: Path, events: int, processes: int = 2) -> History:
    """Write the history; takes some seconds per million events."""
    history = History(folder, events, int(DEVICES * OWED_SHARE))
    history.archive.mkdir(parents=True)
    pieces = _pieces(history)
    with ProcessPoolExecutor(processes) as pool:
        stored = list(pool.map(_write_segment, [history.archive] * len(pieces), pieces))
    _write(history, "segments", stored)
    _write(history, "streams", _streams(pieces))
    _write(history, "versions", _versions(history))
    _write(history, "endpoints", _endpoints())
    _write(history, "clients", [_client()])
    for number, piece in enumerate(pieces):
        pending = pending_rows(history, piece)
        _append(history, "deliveries", number, pending.deliveries)
        _append(history, "attempts", number, pending.attempts)
    for name in TABLES.keys() - {path.name for path in history.inputs.iterdir()}:
        _write(history, name, [])
    return history


def _pieces(history: History) -> list[Piece]:
    size = min(SEGMENT_EVENTS, history.events)
    found = []
    for at in range(history.segments):
        turn, stream = divmod(at, STREAMS)
        first = turn * size + 1
        found.append(Piece(at + 1, 100 + stream, first, first + size - 1))
    return found


@cache
def _templates() -> list[bytes]:
    """Return the stored bytes of an event of each device, without the producer's id."""
    found = []
    for number in range(DEVICES):
        [parsed] = parse(orjson.dumps(event_of(number)), JSON)
        mask = event_mask(parsed)
        assert isinstance(mask, int)
        found.append(stored_bytes(parsed, client=CLIENT, mask=mask))
    return found


def _payloads(piece: Piece) -> Iterator[bytes]:
    """Yield the payloads. Protobuf fields may be concatenated: the id is appended to the
    template.
    """
    templates = _templates()
    for number in piece.numbers.tolist():
        made = event_pb2.EventId(client=CLIENT, incarnation=piece.stream_id, sequence=number + 1)
        own = event_pb2.Event(producer_id=made)
        yield templates[number % DEVICES] + own.SerializeToString()


def _write_segment(archive: Path, piece: Piece) -> dict[str, Any]:
    """Write the file; return its row of `segments`."""
    payloads = list(_payloads(piece))
    times = piece.times_us
    table = pa.table(
        {
            "sequence": np.arange(piece.first, piece.last + 1),
            "appended_at": pa.array(times, pa.timestamp("us", tz="UTC")),
            "mask": pa.array(np.ones(len(times), np.uint64)),
            "payload": pa.array(payloads, pa.binary()),
        }
    )
    file = archive / f"{piece.id:08}.parquet"
    pq.write_table(table, file, compression="zstd", row_group_size=4_096, write_page_checksum=True)
    data = file.read_bytes()
    return {
        "id": piece.id,
        "uuid": f"00000000-0000-4000-8000-{piece.id:012}",
        "stream_id": piece.stream_id,
        "partition_id": 1,
        "first": piece.first,
        "last": piece.last,
        "bytes": sum(map(len, payloads)),
        "sealed": True,
        "tier": "archived",
        "opened_at_us": int(times[0]),
        "sealed_at_us": int(times[-1]),
        "archived": True,
        "source": "archive",
        "file": file.name,
        "file_bytes": len(data),
        "file_sha256": hashlib.sha256(data).hexdigest(),
        "appended_min_us": int(times[0]),
        "appended_max_us": int(times[-1]),
    }


def _streams(pieces: Sequence[Piece]) -> list[dict[str, Any]]:
    heads = {piece.stream_id: piece.last for piece in pieces}
    return [
        {
            "id": id,
            "zone_id": 1,
            "zone": "default",
            "name": f"stream-{id}",
            "head": head,
            "forwarded": head,
            "needed": None,
            "keyed": False,
            "archive": True,
            "on_lag": "keep",
        }
        for id, head in heads.items()
    ]


def _versions(history: History) -> list[dict[str, Any]]:
    return [
        {
            "stream_id": 100 + stream,
            "id": _registration(stream, device),
            "registration_id": _registration(stream, device),
            "number": 1,
            "client_id": 1,
            "client": CLIENT,
            "zone_id": 1,
            "zone": "default",
            "endpoint_id": 1 + device % ENDPOINTS,
            "language": "pairs",
            "filter": f'{{"attributes": {{"device": "d{device}"}}}}',
            "since": 0,
            "suspended": False,
            "report": 0,
            "started_at_us": STARTED_US,
        }
        for stream in range(STREAMS)
        for device in range(history.asked)
    ]


def _registration(stream: Any, device: Any) -> Any:
    return 1 + stream * DEVICES + device


def _endpoints() -> list[dict[str, Any]]:
    return [
        {"id": 1 + at, "zone_id": 1, "client_id": 1, "client": CLIENT, "host": "localhost",
         "ordered": False, "enabled": True}
        for at in range(ENDPOINTS)
    ]  # fmt: skip


def _client() -> dict[str, Any]:
    return {"id": 1, "zone_id": 1, "zone": "default", "name": CLIENT, "groups": []}


class _PendingRows(NamedTuple):
    """The pending rows of one segment."""

    deliveries: pa.Table
    attempts: pa.Table


def pending_rows(history: History, piece: Piece) -> _PendingRows:
    """Return a delivery for each event whose device has a registration; it took 20 to 520 ms."""
    devices = device_of(piece.numbers)
    at = np.flatnonzero(devices < history.asked)
    device, created = devices[at], piece.times_us[at] + 5_000
    count = len(at)
    retried = np.arange(count) % RETRIED == 0
    took = 15_000 + (device * 7_907 % 500) * 1_000
    finished = created + took + np.where(retried, 5_000_000, 0)
    registrations = _registration(piece.stream_id - 100, device)
    where = {
        "endpoint_id": 1 + device % ENDPOINTS,
        "segment_id": np.full(count, piece.id),
        "sequence": piece.first + at,
    }
    offsets = np.arange(count + 1, dtype=np.int32)
    deliveries = {
        **where,
        "stream_id": np.full(count, piece.stream_id),
        "partition_id": np.ones(count, np.int64),
        "registrations": pa.ListArray.from_arrays(offsets, pa.array(registrations)),
        "state": np.full(count, "delivered"),
        "attempts": 1 + retried.astype(np.int64),
        "created_at_us": created,
        "finished_at_us": finished,
    }
    good = {
        **where,
        "attempted_at_us": finished - 10_000,
        "number": 1 + retried.astype(np.int64),
        "outcome": np.full(count, "delivered"),
        "status": np.full(count, 204),
        "duration_ms": np.full(count, 10),
    }
    bad = {
        **{name: values[retried] for name, values in good.items()},
        "attempted_at_us": created[retried] + 1_000,
        "number": np.ones(retried.sum(), np.int64),
        "outcome": np.full(retried.sum(), "status"),
        "status": np.full(retried.sum(), 503),
    }
    attempts = [_table("attempts", good), _table("attempts", bad)]
    return _PendingRows(_table("deliveries", deliveries), pa.concat_tables(attempts))


def _table(name: str, columns: dict[str, Any]) -> pa.Table:
    """Return the table, with nulls in the columns that are not given."""
    count = len(next(iter(columns.values())))
    schema = TABLES[name]
    arrays = [
        pa.nulls(count, field.type) if field.name not in columns
        else pa.array(columns[field.name], field.type)
        for field in schema
    ]  # fmt: skip
    return pa.Table.from_arrays(arrays, schema=schema)


def _write(history: History, name: str, rows: Sequence[dict[str, Any]]) -> None:
    _append(history, name, 0, pa.Table.from_pylist(list(rows), schema=TABLES[name]))


def _append(history: History, name: str, number: int, table: pa.Table) -> None:
    folder = history.inputs / name
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, folder / f"part-{number:05}.parquet", compression="zstd")
