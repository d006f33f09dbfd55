"""The audit of listeners (FOX-23). One run audits all cases, each with a client of its own."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from sparkjobs.audit.listeners import (
    NOT_DELIVERED,
    NOT_MATCHED,
    SKIPPED,
    ListenerTables,
    audit_listeners,
)
from sparkjobs.inputs import table
from tests.spark.history import ORDERS, TICKS, ZONE, JobHistory, time_of

HEAD = 130  # of ORDERS
Row = dict[str, Any]


def span(after: int, through: int, **more: Any) -> Row:
    return {"sequence": after, "delivered_sequence": through, **more}


def killed(after: int, through: int) -> Row:
    """Return the row of a listener whose process was killed."""
    return span(after, through, ended_at_us=None, end_reason=None)


# Registration 3 of the history matches room 3, and is suspended from 21 to 60.
ACTIVE = [n for n in range(1, HEAD + 1) if n % 5 == 3 and not 21 <= n <= 60]
NAMED = {"filter": None, "registrations": [3]}
ROOM_2 = {"filter": "(= room 2)"}  # one event in five
NEVER = {"filter": "(= room 77)", "delivered_events": 0}

# By client: its successive listeners on ORDERS, and the expected faults.
CASES: dict[str, tuple[list[Row], list[tuple[str, int, int]]]] = {
    "four incarnations": (
        [span(0, 50, start="oldest"), span(50, 70), killed(70, 70), span(95, HEAD)],
        [],
    ),
    "a skipped range": (
        [span(0, 50, start="oldest"), span(60, 100), killed(90, 95), span(110, HEAD)],
        [(SKIPPED, 51, 60)],
    ),
    "believed once after a crash": (
        [killed(0, 10), span(50, 60), span(70, HEAD)],
        [(SKIPPED, 61, 70)],
    ),
    "less and more": (
        [
            span(0, 40, delivered_events=8, start="oldest", **ROOM_2),
            span(40, 80, delivered_events=7, **ROOM_2),
            span(80, HEAD, delivered_events=11, **ROOM_2),
        ],
        [(NOT_DELIVERED, 41, 80), (NOT_MATCHED, 81, HEAD)],
    ),
    "a skipped range without matching events": ([span(0, 40, **NEVER), span(80, 100, **NEVER)], []),
    "another filter": (
        [span(0, 40, start="oldest"), span(50, HEAD, delivered_events=16, **ROOM_2)],
        [(SKIPPED, 41, 50)],
    ),
    "registrations": ([span(0, HEAD, start="oldest", delivered_events=len(ACTIVE), **NAMED)], []),
    "suspended registrations": (
        [span(0, HEAD, start="oldest", delivered_events=len(ACTIVE) + 1, **NAMED)],
        [(NOT_MATCHED, 1, HEAD)],
    ),
    "starts of its own choice": (
        [span(0, 10, start="oldest"), span(40, 60, start="now"), span(90, 100, start="gap")],
        [],
    ),
    "more listeners than are recorded": (
        [span(0, 10), span(10, 10, transport="unrecorded", start="now"), span(90, 95)],
        [],
    ),
    "dropped by policy": ([span(0, 30, delivered_events=3, stream_id=TICKS)], []),
    "sequences without a segment": ([span(20, 45, delivered_events=25, stream_id=TICKS)], []),
    "a filter that was not recorded": ([span(0, 40, filter=None), span(50, 60, filter=None)], []),
    "another channel": ([span(0, HEAD, mask=2, delivered_events=0)], []),
}


class AuditedListeners:
    def __init__(self, spark: SparkSession, history: JobHistory) -> None:
        history.write()
        order = history.spec("audit")
        found = audit_listeners(
            order, ListenerTables(*(table(spark, order, name) for name in ListenerTables._fields))
        )
        self.faults = [
            (row.client, (row.kind, row["first"], row["last"]))
            for row in found.faults.orderBy("first").collect()
        ]
        self.clients = {row.client: row.asDict() for row in found.clients.collect()}


@pytest.fixture(scope="module")
def audited(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> AuditedListeners:
    history = JobHistory(tmp_path_factory.mktemp("listeners"))
    history.stream(TICKS)["head"] = 45  # a fault of its own: no segment has 41 to 45
    for number, (client, (rows, _)) in enumerate(CASES.items(), start=100):
        history.tables["clients"].append({"id": number, **ZONE, "name": client, "groups": []})
        listeners = history.tables.setdefault("listeners", [])
        for row in rows:
            listeners.append(
                listener({"client_id": number, "client": client, **row}, len(listeners))
            )
    return AuditedListeners(spark, history)


def listener(row: Row, number: int) -> Row:
    """Complete a row of the record; by default everything was delivered."""
    request = row.get("mask"), row.get("filter", "true"), row.get("registrations")
    return {
        "id": number,
        "stream_id": ORDERS,
        "zone_id": ZONE["zone_id"],
        "node": f"node-{number}",
        "transport": "websocket",
        "name": "a",
        "start": "cursor",
        "mask": -1,
        "filter": "true",
        "registrations": [],
        "request_digest": str(request),
        "delivered_events": row["delivered_sequence"] - row["sequence"],
        "started_at_us": time_of(number),
        "updated_at_us": time_of(number + 1),
        "ended_at_us": time_of(number + 1),
        "end_reason": "disconnected",
        **row,
    }


@pytest.mark.parametrize("client", CASES)
def test_faults_of_each_case(audited: AuditedListeners, client: str) -> None:
    _, expected = CASES[client]
    assert [fault for name, fault in audited.faults if name == client] == expected


def test_all_incarnations_together_received_everything(audited: AuditedListeners) -> None:
    client = audited.clients["four incarnations"]
    assert (client["incarnations"], client["nodes"]) == (4, 4)
    assert client["expected"] == client["delivered"] == HEAD
    assert (client["repeats"], client["skipped"], client["unchecked"]) == (0, 0, 0)


def test_repeated_and_skipped_events_are_counted(audited: AuditedListeners) -> None:
    """91 to 95 came twice; the client claims 101 to 110 from before its process was killed."""
    client = audited.clients["a skipped range"]
    assert (client["expected"], client["delivered"]) == (HEAD, HEAD - 10)
    assert (client["skipped"], client["repeats"]) == (10, 5)


def test_unrecorded_interests_are_not_summed(audited: AuditedListeners) -> None:
    assert audited.clients["dropped by policy"]["unchecked"] == 20
    unknown = audited.clients["a filter that was not recorded"]
    assert unknown["expected"] is None and unknown["delivered"] is None
    assert audited.clients["registrations"]["expected"] == len(ACTIVE)
