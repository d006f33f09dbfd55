"""A small hub's history as jobs read it, where all is well: what was owed is found by plain Python,
not by the product's matcher. Tests change a row or a file of it and see what a job says.
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

BEGAN_US = 1_760_000_400_000_000  # 2025-10-09 09:00 UTC
STEP_US = 30_000_000  # between two events of a stream: 120 in an hour
NOW_US = BEGAN_US + 24 * 3_600_000_000
ZONE = {"zone_id": 7, "zone": "acme"}
SYSTEM, ORDERS, TICKS = 1, 100, 101
DESK, GUESTS = 11, 12  # endpoints
Row = dict[str, Any]


class Kept(NamedTuple):
    """A version of a registration, and what it asks for in Python."""

    id: int
    stream_id: int
    endpoint_id: int
    language: str
    filter: str
    wants: Callable[[Event], bool]
    since: int = 0
    until: int | None = None
    group_id: int | None = None


VERSIONS = (
    Kept(1, ORDERS, DESK, "pairs", '{"attributes": {"room": 2}}',
         lambda event: event.attributes.get("room") == 2),
    Kept(2, ORDERS, DESK, "predicate", '"(and (= vip true) (> room 0))"',
         lambda event: event.attributes["vip"] and event.attributes["room"] > 0,
         since=10, until=100),
    Kept(3, ORDERS, GUESTS, "pairs", '{"attributes": {"room": 3}}',
         lambda event: event.attributes["room"] == 3, group_id=5),
    Kept(4, TICKS, GUESTS, "pairs", '{"type": "order.paid"}', lambda event: True, since=20),
)  # fmt: skip
ASLEEP = range(21, 61)  # group 5, on ORDERS


class History:
    """The folder of a run, its tables, and the events of each segment that can be read."""

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
            "versions": [_version(kept) for kept in VERSIONS],
            "suspensions": [
                {"stream_id": ORDERS, "group_id": 5, "since": ASLEEP[0] - 1, "until": ASLEEP[-1]}
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
        for endpoint_id, registrations in owed_by_hand(segment["stream_id"], sequence, event):
            where = {
                "endpoint_id": endpoint_id,
                "segment_id": segment["id"],
                "sequence": sequence,
                "run": 0,
            }
            made, done = time_of(sequence) + 5_000, time_of(sequence) + 20_000
            self.tables["deliveries"].append(
                {**where, "stream_id": segment["stream_id"], "partition_id": 3,
                 "registrations": registrations, "state": "delivered", "attempts": 1,
                 "created_at_us": made, "finished_at_us": done}
            )  # fmt: skip
            self.tables["attempts"].append(
                {**where, "attempted_at_us": done - 10_000, "number": 1, "outcome": "delivered",
                 "status": 204, "duration_ms": 10}
            )  # fmt: skip

    # --- what tests look up and change ---

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
            if (row["endpoint_id"], row["sequence"], row["stream_id"], row["run"])
            == (endpoint_id, sequence, stream_id, 0)
        ]
        return row

    def attempts(self, delivery: Row) -> list[Row]:
        where = ("endpoint_id", "segment_id", "sequence", "run")
        return [
            row
            for row in self.tables["attempts"]
            if all(row[name] == delivery[name] for name in where)
        ]

    def remove(self, table: str, *rows: Row) -> None:
        for row in rows:
            self.tables[table].remove(row)

    def undeliver(self, endpoint_id: int, sequence: int) -> None:
        """As if it had never been owed."""
        delivery = self.delivery(endpoint_id, sequence)
        self.remove("attempts", *self.attempts(delivery))
        self.remove("deliveries", delivery)

    def path(self, segment_id: int) -> Path:
        """Of the segment's file."""
        row = self.segment(segment_id)
        if row["source"] == "archive":
            return self.archive / row["file"]
        return self.folder / "inputs" / "events" / f"{segment_id}.parquet"

    def store(self, segment_id: int) -> None:
        """Write `events` of a segment, and say in its row what an archive's manifest would."""
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
        """The tables into the run's inputs, in so many files each."""
        write_tables(self.folder / "inputs", self.tables, files=files, backwards=backwards)

    def order(self, job: str, run: int = 1, **params: Any) -> JobSpec:
        """A run of a job on it, with folders of its own for its work and result."""
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
    return BEGAN_US + sequence * STEP_US


def event_of(stream_id: int, sequence: int) -> Event:
    """Producers leave out every other number; that is no fault."""
    if stream_id == SYSTEM:
        return Event("eventhub", "stream.created", {"zone": "acme", "stream": f"s{sequence}"})
    attributes = {"room": sequence % 5, "vip": sequence % 7 == 0, "text": f"order {sequence}"}
    id = EventId("till", 0, sequence * 2, 1)
    return Event("shop", "order.paid", attributes, id=id, source="till")


def owed_by_hand(stream_id: int, sequence: int, event: Event) -> Iterator[tuple[int, list[int]]]:
    """(endpoint, registrations), as the versions' texts say."""
    found: dict[int, list[int]] = {}
    for kept in VERSIONS:
        within = kept.since < sequence and (kept.until is None or sequence <= kept.until)
        asleep = kept.group_id == 5 and sequence in ASLEEP
        if kept.stream_id == stream_id and within and not asleep and kept.wants(event):
            found.setdefault(kept.endpoint_id, []).append(kept.id)
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


def _version(kept: Kept) -> Row:
    client = (1, "desk") if kept.endpoint_id == DESK else (2, "guests")
    return {
        **ZONE,
        "stream_id": kept.stream_id,
        "id": kept.id,
        "registration_id": kept.id,
        "number": 1,
        "client_id": client[0],
        "client": client[1],
        "endpoint_id": kept.endpoint_id,
        "language": kept.language,
        "filter": kept.filter,
        "since": kept.since,
        "until": kept.until,
        "suspended": False,
        "group_id": kept.group_id,
        "report": False,
        "began_at_us": BEGAN_US,
    }
