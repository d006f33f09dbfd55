"""Retention plans compared with the hub: random histories in a real database are exported and
planned, and then dropped by the policies as upkeep does.
"""

import random
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from delivery import log_retention
from eventhub.eventlog import streams
from eventhub.eventlog.retention.cleaning import read_partitions
from eventhub.eventlog.retention.drop import RetentionHooks, drop_by_policy
from eventhub.eventlog.retention.quota import is_worth_cleaning
from eventhub.eventlog.streams import StreamPolicy
from eventhub.postgresql.connections import Connection
from sparkjobs.job_spec import JobSpec
from sparkjobs.progress import Phases
from sparkjobs.retention.run import run
from sparkjobs.retention.transform import ARCHIVE, DROP, KEEP
from sparkjobs.runs.export.snapshot import ExportRequest, export_inputs
from tests.databases import migrated_database
from tests.integration.eventlog_world import append_now, draft, execute
from tests.integration.retention_world import ENOUGH, NOW_US, ask, connected, next_group
from tests.spark.tables import write_tables

TABLES = frozenset({"streams", "segments", "event_partitions"})
STREAMS, ROUNDS = 40, 4
HOUR_US = 3_600_000_000


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with migrated_database("plan") as url:
        yield url


@pytest.fixture
async def connection(url: str) -> AsyncIterator[Connection]:
    async with connected(url) as opened:
        yield opened


def some_policy(chance: random.Random) -> dict[str, Any]:
    """Return a random policy of the fields that a plan may propose."""
    return {
        "retain_events": chance.choice([None, None, 20, 50, 100]),
        "retain_bytes": chance.choice([None, 150, 600]),
        "retain_age_s": chance.choice([None, 3_600, 36_000]),
        "on_lag": chance.choice(["keep", "drop"]),
        "hold": chance.choice([None] * 7 + ["case 7"]),
        "archive": chance.choice([True, False, False, False]),
    }


async def fill(url: str, chance: random.Random) -> dict[str, int]:
    """Create streams with segments in several partitions; return their ids by name."""
    ids = {}
    with psycopg.connect(url) as connection:
        zone = connection.execute("SELECT id FROM zones ORDER BY id LIMIT 1").fetchone()
        assert zone is not None
        for number in range(STREAMS):
            size = chance.randint(3, 12)
            policy = StreamPolicy(segment_events_max=size, **some_policy(chance))
            row = streams.create_stream(connection, zone[0], f"s{number}", policy)
            assert row is not None
            ids[row.name] = row.id
    for _ in range(ROUNDS):
        for stream in ids.values():
            count = chance.randint(0, 40)
            append_now(url, *(draft(stream, n, size=chance.randint(0, 60)) for n in range(count)))
        await next_group(url)
    for [segment] in ask(url, "SELECT id FROM segments WHERE last IS NOT NULL ORDER BY id"):
        sealed_us = NOW_US - chance.randint(0, 20) * HOUR_US
        archive = chance.choice([None, "zone=1/x.json"])
        execute(url, "UPDATE segments SET sealed_at = to_timestamp(%s), archive_path = %s"
                " WHERE id = %s",
                sealed_us / 1e6, archive, segment)  # fmt: skip
    for stream in chance.sample([*ids.values()], STREAMS // 4):
        execute(url, "INSERT INTO forwarding (stream_id, segment, sequence)"
                     " SELECT stream_id, segment, %s FROM heads WHERE stream_id = %s",
                chance.randint(0, 60), stream)  # fmt: skip
    return ids


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", [7])
async def test_a_plan_predicts_what_the_hub_does_with_those_policies(
    url: str, connection: Connection, spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    ids = await fill(url, chance)
    hooks = RetentionHooks(needs=log_retention.lowest_needed_sequences)
    await drop_by_policy(connection, hooks, NOW_US - 10 * HOUR_US)  # some are dropped before
    snapshot = export_inputs(ExportRequest(url, "", tmp_path / "inputs", TABLES), lambda *_: None)
    assert snapshot.rows["streams"] == STREAMS + 1
    proposed = {name: some_policy(chance) for name in chance.sample([*ids], STREAMS // 4)}
    [[zone_id, zone]] = ask(url, "SELECT id, name FROM zones ORDER BY id LIMIT 1")
    params = {"zone": zone, "zone_id": zone_id, "policies": proposed}
    spec = JobSpec(
        "retention", 1, params, f"{tmp_path}/inputs", "", f"{tmp_path}/result", "", NOW_US
    )
    result = run(spark, spec, Phases(spark.sparkContext))
    plan = pq.read_table(tmp_path / "result" / "plan.parquet").to_pylist()

    for name, policy in proposed.items():
        columns = ", ".join(f"{field} = %s" for field in policy)
        execute(url, f"UPDATE streams SET {columns} WHERE id = %s", *policy.values(), ids[name])
    live = "SELECT id FROM segments WHERE tier = 'live' AND stream_id > 1 ORDER BY id"
    assert sorted(row["segment_id"] for row in plan) == [id for (id,) in ask(url, live)]
    due = ask(
        url,
        "SELECT g.id FROM segments g JOIN streams s ON s.id = g.stream_id"
        " WHERE s.archive AND s.hold IS NULL"
        " AND g.archive_path IS NULL AND g.last IS NOT NULL AND g.tier = 'live'",
    )
    while await drop_by_policy(connection, hooks, NOW_US):
        pass
    query = "SELECT id, removal_reason FROM segments WHERE removed_at = to_timestamp(%s)"
    removed = ask(url, query, NOW_US / 1e6)
    dropped = {row["segment_id"]: row["reason"] for row in plan if row["action"] == DROP}
    assert dropped == dict(removed)
    assert set(dropped.values()) == {"age", "size", "count"}
    archived = {row["segment_id"] for row in plan if row["action"] == ARCHIVE}
    assert archived == {id for (id,) in due}
    kept = {row["reason"] for row in plan if row["action"] == KEEP}
    assert kept >= {"hold", "needed", "policy"}

    [[current]] = ask(url, "SELECT current_partition FROM log_state")
    groups = [group for group in await read_partitions(connection) if group.id < current]
    worth = {group.id for group in groups if is_worth_cleaning(group, ENOUGH)}
    cleaned = pyarrow.csv.read_csv(tmp_path / "result" / "partitions.csv")[
        "partition_id"
    ].to_pylist()
    assert {*cleaned} == worth
    assert 0 < len(worth) < len(groups)
    compact = {row["partition_id"] for row in plan if row["action"] == "compact"}
    assert compact == {row["partition_id"] for row in plan if row["action"] != DROP} & worth
    assert result.figures["drop_segments"] == len(dropped)


def test_the_first_rule_that_applies_wins_and_actions_are_listed_first(
    spark: SparkSession, tmp_path: Path
) -> None:
    stream = {"zone_id": 1, "zone": "acme", "on_lag": "keep", "archive": False, "keyed": False}
    rows = [
        {**stream, "id": 10, "name": "aged", "retain_age_s": 60, "retain_events": 1},
        {**stream, "id": 11, "name": "lagging", "retain_events": 1, "needed": 6},
        {**stream, "id": 12, "name": "<b>held</b>", "retain_events": 1, "hold": "case 7"},
        {**stream, "id": 13, "name": "fresh", "retain_events": 1, "archive": True},
        {**stream, "id": 14, "name": "moved"},
    ]
    segments = [
        {"id": row["id"] * 10 + at, "uuid": f"u{row['id']}{at}", "stream_id": row["id"],
         "partition_id": 1 if row["id"] == 14 else 2, "first": at * 5 + 1, "last": at * 5 + 5,
         "bytes": 100, "sealed": at < 2, "tier": "live", "sealed_at_us": NOW_US - 100_000_000,
         "opened_at_us": 0, "archived": False, "source": "none"}
        for row in rows for at in range(3)
    ]  # fmt: skip
    groups = [
        {"id": 1, "current": False, "size_bytes": 4_000, "live_bytes": 300, "stored_bytes": 1_200},
        {"id": 2, "current": True, "size_bytes": 4_000, "live_bytes": 0, "stored_bytes": 1_000},
        {"id": 3, "current": False, "size_bytes": 8, "live_bytes": 0, "stored_bytes": 0},  # ahead
    ]
    write_tables(
        tmp_path / "inputs", {"streams": rows, "segments": segments, "event_partitions": groups}
    )
    spec = JobSpec("retention", 1, {}, f"{tmp_path}/inputs", "", f"{tmp_path}/result", "", NOW_US)
    details = run(spark, spec, Phases(spark.sparkContext)).details
    found = [(row["stream"], row["first"], row["action"], row["reason"])
             for row in details["segments"]]  # fmt: skip
    assert found == [
        ("aged", 1, "drop", "age"),
        ("aged", 6, "drop", "age"),
        ("lagging", 1, "drop", "count"),
        ("fresh", 1, "archive", "not_archived"),
        ("fresh", 6, "archive", "not_archived"),
        ("moved", 1, "compact", "mostly_dropped"),
        ("moved", 6, "compact", "mostly_dropped"),
        ("moved", 11, "compact", "mostly_dropped"),
        ("aged", 11, "keep", "open"),
        ("lagging", 6, "keep", "needed"),
        ("lagging", 11, "keep", "open"),
        ("<b>held</b>", 1, "keep", "hold"),
        ("<b>held</b>", 6, "keep", "hold"),
        ("<b>held</b>", 11, "keep", "open"),
        ("fresh", 11, "keep", "open"),
    ]
    assert details["actions"]["drop"] == {"segments": 3, "events": 15, "bytes": 300}
    assert details["actions"]["compact"]["freed_bytes"] == 3_000
    page = (tmp_path / "result" / "report.html").read_text()
    assert "<b>held" not in page
    assert "&lt;b&gt;held" in page
