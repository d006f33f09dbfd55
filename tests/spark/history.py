"""A small hub's history as jobs read it, without faults. Expected deliveries are computed in plain
Python, not by the product's matcher. Tests change a row or a file and check what a job reports.
"""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from eventhub.event.envelope import Event
from eventhub.event.identity import EventId
from eventhub.event.protobuf_codec import encode
from sparkjobs.job_spec import JobSpec
from sparkjobs.tables import EVENTS
from tests.spark.tables import write_tables

STARTED_US = 1_760_000_400_000_000  # 2025-10-09 09:00 UTC
STEP_US = 30_000_000  # between two events of a stream: 120 in an hour
NOW_US = STARTED_US + 24 * 3_600_000_000
ZONE = {"zone_id": 7, "zone": "acme"}
SYSTEM, ORDERS, TICKS = 1, 100, 101
DESK, GUESTS = 11, 12  # endpoints
Row = dict[str, Any]


class HistoricVersion(NamedTuple):
    """A version of a registration, with its filter as a Python function."""

    id: int
    stream_id: int
    endpoint_id: int
    language: str
    filter: str
    matches: Callable[[Event], bool]
    since: int = 0
    until: int | None = None
    group_id: int | None = None


VERSIONS = (
    HistoricVersion(
        *(1, ORDERS, DESK, "pairs", '{"attributes": {"room": 2}}'),
        lambda event: event.attributes.get("room") == 2,
    ),
    HistoricVersion(
        *(2, ORDERS, DESK, "predicate", '"(and (= vip true) (> room 0))"'),
        lambda event: event.attributes["vip"] and event.attributes["room"] > 0,
        since=10,
        until=100,
    ),
    HistoricVersion(
        *(3, ORDERS, GUESTS, "pairs", '{"attributes": {"room": 3}}'),
        lambda event: event.attributes["room"] == 3,
        group_id=5,
    ),
    HistoricVersion(
        *(4, TICKS, GUESTS, "pairs", '{"type": "order.paid"}'), lambda event: True, since=20
    ),
)
SUSPENDED = range(21, 61)  # group 5, on ORDERS


class JobHistory:
    """The folder of a run: its tables, and the events of each readable segment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.archive = folder / "archive"
        self.archive.mkdir()
        self.tables: dict[str, list[Row]] = {
            "streams": [
                _stream(SYSTEM, "system", 3, {"zone_id": 0, "zone": ""}),
                _stream(ORDERS, "orders", 130, ZONE),
                _stream(TICKS, "ticks", 40, ZONE),
            ],
            "clients": [
                {"id": 1, **ZONE, "name": "desk", "groups": ["staff"]},
                {"id": 2, **ZONE, "name": "guests", "groups": []},
            ],
            "endpoints": [_endpoint(DESK, 1, "desk"), _endpoint(GUESTS, 2, "guests")],
            "versions": [_version(version) for version in VERSIONS],
            "suspensions": [
                {
                    "stream_id": ORDERS,
                    "group_id": 5,
                    "since": SUSPENDED[0] - 1,
                    "until": SUSPENDED[-1],
                }
            ],
            "producers": [
                {"stream_id": ORDERS, "client": "till", "incarnation": 1, "highest_number": 260},
                {"stream_id": TICKS, "client": "till", "incarnation": 1, "highest_number": 80},
            ],
        }
        for name in ("segments", "live", "deliveries", "attempts", "fanouts", "retired", "types"):
            self.tables[name] = []
        self.events: dict[int, list[tuple[int, Event]]] = {}
        self._fill()

    def _fill(self) -> None:
        self._segment(1, SYSTEM, 1, 3, source="export")
        self._segment(1001, ORDERS, 1, 40, tier="archived", source="archive")
        self._segment(1002, ORDERS, 41, 80, tier="archived", source="archive")
        self._segment(1003, ORDERS, 81, 120, source="archive")
        self._segment(1004, ORDERS, 121, 130, source="export")
        self._segment(1005, TICKS, 1, 20, tier="dropped", source="none", removal_reason="age")
        self._segment(1006, TICKS, 21, 40, tier="archived", source="archive")
        size = self.segment(1003)["bytes"]
        self.tables["live"].append(
            {
                "segment_id": 1003,
                "events": 40,
                "first": 81,
                "last": 120,
                "bytes": size,
                "missing": [],
            }
        )

    def _segment(self, id: int, stream_id: int, first: int, last: int, **fields: Any) -> None:
        events = [(sequence, event_of(stream_id, sequence)) for sequence in range(first, last + 1)]
        row = {
            "id": id,
            "uuid": f"00000000-0000-4000-8000-{id:012}",
            "stream_id": stream_id,
            "partition_id": 3,
            "first": first,
            "last": last,
            "bytes": sum(len(encode(event)) for _, event in events),
            "sealed": id not in (1, 1004),
            "tier": "live",
            "opened_at_us": time_of(first) - 1,
            "archived": fields["source"] == "archive",
            **fields,
        }
        self.tables["segments"].append(row)
        if row["source"] != "none":
            self.events[id] = events
            self.store(id)
            for sequence, event in events:
                self._deliver(row, sequence, event)

    def _deliver(self, segment: Row, sequence: int, event: Event) -> None:
        for endpoint_id, registrations in expected_by_hand(segment["stream_id"], sequence, event):
            key = {
                "endpoint_id": endpoint_id,
                "segment_id": segment["id"],
                "sequence": sequence,
            }
            created, done = time_of(sequence) + 5_000, time_of(sequence) + 20_000
            self.tables["deliveries"].append(
                {**key, "stream_id": segment["stream_id"], "partition_id": 3,
                 "registrations": registrations, "state": "delivered", "attempts": 1,
                 "created_at_us": created, "finished_at_us": done}
            )  # fmt: skip
            self.tables["attempts"].append(
                {**key, "attempted_at_us": done - 10_000, "number": 1, "outcome": "delivered",
                 "status": 204, "duration_ms": 10}
            )  # fmt: skip

    # --- look-ups and changes by tests ---

    def add_stream(self, id: int, name: str, segments: dict[int, tuple[int, int]]) -> None:
        """Add a stream with archived segments: their first and last sequences by id."""
        head = max(last for _, last in segments.values())
        self.tables["streams"].append(_stream(id, name, head, ZONE))
        producer = {"stream_id": id, "client": "till", "incarnation": 1}
        self.tables["producers"].append({**producer, "highest_number": 2 * head})
        for segment, (first, last) in segments.items():
            self._segment(segment, id, first, last, tier="archived", source="archive")

    def segment(self, id: int) -> Row:
        [row] = [row for row in self.tables["segments"] if row["id"] == id]
        return row

    def stream(self, id: int) -> Row:
        [row] = [row for row in self.tables["streams"] if row["id"] == id]
        return row

    def delivery(self, endpoint_id: int, sequence: int, stream_id: int = ORDERS) -> Row:
        [row] = [
            row
            for row in self.tables["deliveries"]
            if (row["endpoint_id"], row["sequence"], row["stream_id"])
            == (endpoint_id, sequence, stream_id)
        ]
        return row

    def attempts(self, delivery: Row) -> list[Row]:
        key = ("endpoint_id", "segment_id", "sequence")
        return [
            row
            for row in self.tables["attempts"]
            if all(row[name] == delivery[name] for name in key)
        ]

    def remove(self, table: str, *rows: Row) -> None:
        for row in rows:
            self.tables[table].remove(row)

    def remove_delivery(self, endpoint_id: int, sequence: int) -> None:
        """Remove a delivery and its attempts."""
        delivery = self.delivery(endpoint_id, sequence)
        self.remove("attempts", *self.attempts(delivery))
        self.remove("deliveries", delivery)

    def path(self, segment_id: int) -> Path:
        """Return the path of a segment's file."""
        row = self.segment(segment_id)
        if row["source"] == "archive":
            return self.archive / row["file"]
        return self.folder / "inputs" / "events" / f"{segment_id}.parquet"

    def store(self, segment_id: int) -> None:
        """Write the events of a segment, and update its row as the manifest would."""
        row = self.segment(segment_id)
        events = self.events[segment_id]
        columns = [
            [sequence for sequence, _ in events],
            [time_of(sequence) for sequence, _ in events],
            [1] * len(events),
            [encode(event) for _, event in events],
        ]
        table = pa.Table.from_arrays(
            [pa.array(values, field.type) for values, field in zip(columns, EVENTS, strict=True)],
            schema=EVENTS,
        )
        if row["source"] == "archive":
            table = table.rename_columns(["sequence", "appended_at", "mask", "payload"])
            times = table.column("appended_at").cast(pa.timestamp("us", tz="UTC"))
            table = table.set_column(1, "appended_at", times)
            row["file"] = f"{segment_id}.parquet"
        path = self.path(segment_id)
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, path, row_group_size=16, write_page_checksum=True)
        if row["source"] == "archive":
            data = path.read_bytes()
            row["file_bytes"] = len(data)
            row["file_sha256"] = hashlib.sha256(data).hexdigest()

    def write(self, *, files: int = 1, backwards: bool = False) -> None:
        """Write the tables to the run's inputs, in `files` files each."""
        write_tables(self.folder / "inputs", self.tables, files=files, backwards=backwards)

    def spec(self, job: str, run: int = 1, **params: Any) -> JobSpec:
        """Return the spec of a run on this history, with its own work and result folders."""
        return JobSpec(
            job=job,
            run=run,
            params=params,
            inputs=str(self.folder / "inputs"),
            work=str(self.folder / f"work-{run}"),
            result=str(self.folder / f"result-{run}"),
            archive_url=self.archive.as_uri(),
            now_us=NOW_US,
        )


def time_of(sequence: int) -> int:
    return STARTED_US + sequence * STEP_US


def event_of(stream_id: int, sequence: int) -> Event:
    """Return an event; producer numbers are even, since skipped numbers are no fault."""
    if stream_id == SYSTEM:
        return Event("eventhub", "stream.created", {"zone": "acme", "stream": f"s{sequence}"})
    attributes = {"room": sequence % 5, "vip": sequence % 7 == 0, "text": f"order {sequence}"}
    id = EventId("till", 0, sequence * 2, 1)
    return Event("shop", "order.paid", attributes, id=id, source="till")


def expected_by_hand(
    stream_id: int, sequence: int, event: Event
) -> Iterator[tuple[int, list[int]]]:
    """Yield (endpoint, registrations) as the versions' filters say."""
    found: dict[int, list[int]] = {}
    for version in VERSIONS:
        within = version.since < sequence and (version.until is None or sequence <= version.until)
        suspended = version.group_id == 5 and sequence in SUSPENDED
        if version.stream_id == stream_id and within and not suspended and version.matches(event):
            found.setdefault(version.endpoint_id, []).append(version.id)
    yield from sorted(found.items())


def _stream(id: int, name: str, head: int, zone: Row) -> Row:
    return {
        **zone,
        "id": id,
        "name": name,
        "head": head,
        "forwarded": None if id == SYSTEM else head,
        "keyed": False,
        "archive": True,
        "on_lag": "keep",
    }


def _endpoint(id: int, client_id: int, client: str) -> Row:
    zone_id = ZONE["zone_id"]
    return {"id": id, "zone_id": zone_id, "client_id": client_id, "client": client,
            "host": "localhost", "ordered": False, "enabled": True}  # fmt: skip


def _version(version: HistoricVersion) -> Row:
    client = (1, "desk") if version.endpoint_id == DESK else (2, "guests")
    return {
        **ZONE,
        "stream_id": version.stream_id,
        "id": version.id,
        "registration_id": version.id,
        "number": 1,
        "client_id": client[0],
        "client": client[1],
        "endpoint_id": version.endpoint_id,
        "language": version.language,
        "filter": version.filter,
        "since": version.since,
        "until": version.until,
        "suspended": False,
        "group_id": version.group_id,
        "report": 0,
        "started_at_us": STARTED_US,
    }
