"""The exported inputs of jobs, compared with what was done through the public API."""

import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from eventhub.event.identity import stored_incarnation
from sparkjobs.runs.export.snapshot import ExportedSnapshot, ExportRequest, export_inputs
from sparkjobs.tables import TABLES
from tests.live import LiveHub, LiveZone
from tests.sink import Sink

Rows = dict[str, list[dict[str, Any]]]
EVENT = {"domain": "shop", "type": "order.placed"}
WAIT_S = 60.0


def zone_id(zone: LiveZone) -> int:
    return int(zone.hub.sql("SELECT id FROM zones WHERE name = %s", zone.name)[0][0])


def exported(zone: LiveZone, folder: Path) -> Rows:
    """Export all tables of a zone, and check their schemas and counts."""
    hub = zone.hub
    archive = hub.env["EVENTHUB_ARCHIVE_URL"]
    request = ExportRequest(
        hub.database_url, archive, folder, frozenset(TABLES), zone_id(zone), events=True
    )
    snapshot = export_inputs(request, lambda _table, _rows: None)
    assert isinstance(snapshot, ExportedSnapshot)
    found = {name: pq.read_table(folder / name) for name in TABLES}
    for name, table in found.items():
        assert table.schema.remove_metadata().equals(TABLES[name]), name
        assert table.num_rows == snapshot.rows[name], name
    return {name: table.to_pylist() for name, table in found.items()}


def only(rows: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in rows]


def test_versions_have_their_bounds_as_sequences(zone: LiveZone, tmp_path: Path) -> None:
    hub = zone.hub
    zone.create_stream("orders")
    zone.create_stream("returns")
    zone.emit("orders", [EVENT] * 3)
    group = hub.call("POST", "/v1/registration-groups", {"name": "night"}, key=zone.admin).json
    filter = {"language": "predicate", "filter": "(= size 7)"}
    [first] = zone.register({"streams": ["orders", "returns"], **filter})
    [second] = zone.register({"streams": ["orders"], "group": "night"})
    zone.emit("orders", [EVENT] * 2)
    path = f"/v1/registrations/{first['id']}"
    body = {"language": "predicate", "filter": "(= size 8)"}
    assert hub.call("PATCH", path, body, key=zone.admin).status == 200
    zone.emit("orders", EVENT)
    zone.emit("returns", EVENT)
    night = f"/v1/registration-groups/{group['id']}"
    assert hub.call("PATCH", night, {"suspended": True}, key=zone.admin).status == 200
    zone.emit("orders", EVENT)
    assert hub.call("PATCH", night, {"suspended": False}, key=zone.admin).status == 200
    assert hub.call("DELETE", path, key=zone.admin).status == 204
    found = exported(zone, tmp_path / "in")
    streams = {row["name"]: row["id"] for row in found["streams"]}
    assert {row["zone"] for row in found["streams"]} == {zone.name}
    versions = sorted(
        only(found["versions"], "registration_id", "stream_id", "number", "since", "until")
    )
    orders, returns = streams["orders"], streams["returns"]
    assert versions == sorted(
        [
            (first["id"], orders, 1, 3, 5),
            (first["id"], orders, 2, 5, 7),
            (first["id"], returns, 1, 0, 0),
            (first["id"], returns, 2, 0, 1),
            (second["id"], orders, 1, 3, None),
        ]
    )
    of_first = [row for row in found["versions"] if row["registration_id"] == first["id"]]
    assert {(row["language"], row["client"], row["zone"]) for row in of_first} == {
        ("predicate", "tester", zone.name)
    }
    filters = sorted(set(only(of_first, "number", "filter")))
    assert filters == [(1, '"(= size 7)"'), (2, '"(= size 8)"')]
    assert all(row["started_at_us"] < row["ended_at_us"] for row in of_first)
    assert only(found["suspensions"], "stream_id", "since", "until") == [(orders, 6, 7)]
    [client] = only(found["clients"], "name", "zone")
    assert client == ("tester", zone.name)


def test_deliveries_are_exported_with_every_attempt(
    zone: LiveZone, sink: Sink, tmp_path: Path
) -> None:
    zone.create_stream("orders")
    path = f"/{zone.name}"
    endpoint = zone.endpoint(sink.url(f"{path}?token=secret"))["id"]
    [registration] = zone.register({"streams": ["orders"], "endpoint": endpoint})
    refused: list[str] = []

    def refuse_once(request: Any) -> tuple[int, dict[str, str]]:
        if request.id in refused:
            return 204, {}
        refused.append(request.id)
        return 503, {"Retry-After": "0"}

    sink.answer = refuse_once
    zone.emit("orders", [EVENT] * 2)
    until_s = time.monotonic() + WAIT_S
    query = f"/v1/deliveries?endpoint={endpoint}&state=delivered"
    while len(zone.hub.call("GET", query, key=zone.admin).json["items"]) < 2:
        assert time.monotonic() < until_s
        time.sleep(0.05)
    found = exported(zone, tmp_path / "in")
    names = ("endpoint_id", "sequence", "state", "attempts", "registrations")
    assert sorted(only(found["deliveries"], *names)) == [
        (endpoint, at, "delivered", 2, [registration["id"]]) for at in (1, 2)
    ]
    attempts = sorted(only(found["attempts"], "sequence", "number", "outcome", "status"))
    assert attempts == [
        (at, number, *how)
        for at in (1, 2)
        for number, how in ((1, ("status", 503)), (2, ("delivered", 204)))
    ]
    [stream] = found["streams"]
    assert (stream["head"], stream["forwarded"], stream["needed"]) == (2, 2, 3)
    [row] = found["endpoints"]
    assert (row["host"], row["client"], row["enabled"]) == ("127.0.0.1", "tester", True)
    assert "secret" not in str(found)
    for row in found["deliveries"]:
        assert row["created_at_us"] <= row["finished_at_us"]


def test_an_export_of_a_zone_contains_only_its_rows(
    hub: LiveHub, zone: LiveZone, tmp_path: Path
) -> None:
    other = hub.new_zone()
    for each in (zone, other):
        each.create_stream("orders")
        each.emit("orders", {**EVENT, "id": {"timestamp": 1, "sequence": 7, "incarnation": 3}})
        each.register({"streams": ["orders"]})
    found = exported(zone, tmp_path / "in")
    assert len(found["streams"]) == len(found["segments"]) == len(found["versions"]) == 1
    [producer] = found["producers"]
    assert producer == {
        "stream_id": found["streams"][0]["id"],
        "client": "tester",
        "incarnation": stored_incarnation(3, 1),
        "highest_number": 7,
    }
    assert {row["zone"] for row in found["clients"]} == {zone.name}
    [segment] = (tmp_path / "in/events").iterdir()
    assert pq.read_table(segment).column("sequence").to_pylist() == [1]
