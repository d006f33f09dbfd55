"""The job `match_index`: the versions it indexes, and its postings and matches compared with those
of other builders and of the scan.
"""

import csv
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import orjson
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from eventhub.base import limits
from registrations.compiled_filter_cache import CompiledFilters
from registrations.match_index.engines.available import new_engine
from registrations.match_index.format.builder import EpochPlan, IndexEntry, build
from registrations.match_index.format.errors import NotIndexable
from registrations.match_index.format.index import open_base
from registrations.match_index.format.shard import Shard
from registrations.match_index.format.versions import COLUMNS, NEVER_ENDS
from registrations.matching.alternatives import FilterMatcher
from registrations.matching.scan import ScanMatcher
from sparkjobs.job_spec import JobSpec
from sparkjobs.match_index import run as job
from sparkjobs.match_index import shards, slices, transform
from sparkjobs.match_index.shards import Pack, pack_slices
from sparkjobs.match_index.slices import RefusedVersion, Slice
from sparkjobs.progress import reported
from sparkjobs.result import JobResult
from sparkjobs.tables import VERSIONS
from tests.benchmarks import interest, predicates
from tests.benchmarks.matching import event_of
from tests.spark import postings
from tests.spark.tables import Row, write_tables

STREAM, AFTER = 7, 50


def version(id: int, filter: dict[str, Any] | str, **given: Any) -> dict[str, Any]:
    """Return a version that belongs in the index."""
    return {
        "stream_id": STREAM,
        "id": id,
        "registration_id": id + 1_000_000,
        "client_id": 1 + id % 3,
        "endpoint_id": 1 + id % 5,
        "language": "pairs" if isinstance(filter, dict) else "predicate",
        "filter": orjson.dumps(filter).decode(),
        "since": 0,
        "suspended": False,
        "report": 0,
        **given,
    }


def pairs(count: int) -> Iterator[dict[str, Any]]:
    """Yield filters of pairs with all kinds of values; some occur twice."""
    chance = Random(1)
    others: list[Any] = [1, 1.0, 2.5, -7, True, None, "Grüße", ""]
    for spec in interest.specs(count):
        attributes: dict[str, Any] = dict(spec.pairs)
        if chance.random() < 0.3:
            attributes["other"] = chance.choice(others)
        gate = {"domain": spec.domain, "type": spec.type}
        yield {**(gate if chance.random() < 0.8 else {}), "attributes": attributes}


class BuiltIndex:
    """A run of the job over given versions."""

    def __init__(self, folder: Path) -> None:
        self.spec = JobSpec(
            job="match_index",
            run=1,
            params={"stream": "orders", "stream_id": STREAM},
            inputs=str(folder / "inputs"),
            work=str(folder / "work"),
            result=str(folder / "result"),
            archive_url="",
            now_us=0,
        )
        self.result = JobResult("", {})

    def run(
        self, spark: SparkSession, versions: list[dict[str, Any]], **layout: Any
    ) -> "BuiltIndex":
        streams = [{"id": STREAM, "name": "orders", "forwarded": AFTER}]
        tables: dict[str, list[Row]] = {"versions": [*versions], "streams": [*streams]}
        write_tables(Path(self.spec.inputs), tables, **layout)
        with reported(spark.sparkContext) as phases:
            self.result = job.run(spark, self.spec, phases)
        return self

    @property
    def files(self) -> list[Path]:
        return sorted(Path(self.spec.work, shards.SHARDS).iterdir())

    @property
    def postings(self) -> postings.Postings:
        return postings.of_shards(self.files)


CASES: list[tuple[dict[str, Any], bool]] = [
    ({}, True),
    ({"stream_id": STREAM + 1}, False),
    ({"endpoint_id": None}, False),
    ({"suspended": True}, False),
    ({"group_id": 4, "report": 3}, True),
    ({"since": 10, "until": AFTER}, False),
    ({"since": 10, "until": AFTER + 1}, True),
    ({"since": 90, "until": 90}, False),
    ({"since": 90, "until": 91}, True),
]


def test_a_version_is_in_the_index_while_it_may_match(spark: SparkSession) -> None:
    rows = [
        {"group_id": None, "until": None, **version(id, {}, **given)}
        for id, (given, _) in enumerate(CASES)
    ]
    fields = [field for field in VERSIONS if field.name in rows[0]]
    frame = spark.createDataFrame(
        [[row[field.name] for field in fields] for row in rows],
        ", ".join(f"{field.name} {_sql(field.type)}" for field in fields),
    )
    indexed = transform.indexed_versions(frame, STREAM, AFTER).collect()
    found = {row.id: row.asDict() for row in indexed}
    assert {*found} == {id for id, (_, is_in) in enumerate(CASES) if is_in}
    for id, values in found.items():
        row = rows[id]
        assert values == {
            "id": id,
            "language": "pairs",
            "filter": "{}",
            "client": row["client_id"],
            "endpoint": row["endpoint_id"],
            "group": row["group_id"] or 0,
            "registration": row["registration_id"],
            "report": row["report"],
            "since": row["since"],
            "until": NEVER_ENDS if row["until"] is None else row["until"],
        }
        assert [*values] == ["id", "language", "filter", *COLUMNS]


def _sql(kind: Any) -> str:
    return {"int64": "long", "bool": "boolean"}.get(str(kind), "string")


def test_postings_equal_those_of_other_builders_for_any_partitioning(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = [version(id, filter) for id, filter in enumerate(pairs(2_000), 1)]
    versions += [version(id, {}, until=AFTER) for id in range(3_000, 3_050)]
    one = BuiltIndex(tmp_path / "one").run(spark, versions)
    [file] = one.files
    local = tmp_path / "local"
    build(local, entries(versions), EpochPlan(extra=COLUMNS, durable=False))
    assert file.read_bytes() == open_base(local).shards[0].path.read_bytes()
    expected = postings.of_filters(Path(one.spec.inputs, "versions"), STREAM, AFTER)
    assert len(expected) > 1_000
    assert one.postings == expected

    monkeypatch.setattr(job, "_SLICE_VERSIONS", 150)
    many = BuiltIndex(tmp_path / "many").run(spark, versions, files=3, backwards=True)
    assert [path.read_bytes() for path in many.files] == [file.read_bytes()]
    monkeypatch.setattr(limits, "INDEX_SHARD_ENTRIES_MAX", 700)
    several = BuiltIndex(tmp_path / "several").run(spark, versions)
    assert len(several.files) > 2
    assert all(Shard(path).head.entries <= 700 for path in several.files)
    assert several.postings == expected
    figures = {"registrations": 2_000, "entries": 2_000, "refused": 0, "shards": len(several.files)}
    assert several.result.figures.items() >= figures.items()


def test_a_thousand_events_match_as_in_the_scan(spark: SparkSession, tmp_path: Path) -> None:
    filters = [*predicates.filters(500), *pairs(500)]
    versions = [version(id, filter) for id, filter in enumerate(filters, 1)]
    built = BuiltIndex(tmp_path).run(spark, versions)
    scan = FilterMatcher(ScanMatcher())
    for entry in entries(versions):
        scan.add(entry.id, entry.specs)
    engines = [new_engine("auto", Shard(path)) for path in built.files]
    matches = 0
    for event in [*predicates.events(500), *interest.coming(500)]:
        found = event_of(orjson.dumps(event))
        expected = sorted(scan.match(found))
        assert sorted(id for engine in engines for id in engine.match(found)) == expected
        matches += len(expected)
    assert matches > 1_000


def test_a_stream_without_registrations_has_no_shards(spark: SparkSession, tmp_path: Path) -> None:
    built = BuiltIndex(tmp_path).run(spark, [])
    assert (built.files, built.result.figures["entries"]) == ([], 0)


def test_slices_are_packed_into_as_few_shards_as_possible() -> None:
    slices = [Slice(number, entries, []) for number, entries in enumerate((3, 0, 4, 5, 2, 9, 1))]
    assert pack_slices(reversed(slices), 10) == [Pack(0, (0, 2)), Pack(1, (3, 4)), Pack(2, (5, 6))]
    assert pack_slices([], 10) == []


def test_a_version_that_no_index_can_hold_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No language has such filters today, so one is planted."""
    specs = CompiledFilters.specs

    def plant(self: CompiledFilters, language: str, filter_json: str) -> Any:
        [spec] = specs(self, language, filter_json)
        return (spec._replace(pairs=(("a", float("nan")),)) if spec.domain == "odd" else spec,)

    monkeypatch.setattr(CompiledFilters, "specs", plant)
    rows = [{"id": 1, "domain": "odd"}, {"id": 2, "domain": "even"}]
    made = slices.write_slice(tmp_path, 4, [batch(rows)])
    assert (made.number, made.entries) == (4, 1)
    [one] = made.refused
    assert (one.version, one.registration) == (1, 11)
    assert "'a'" in one.reason
    assert slices.read_slice(tmp_path, 4).ids.tolist() == [2]
    job._write_refused(tmp_path / "result", job._refused([made]))
    with (tmp_path / "result" / slices.REFUSED).open(newline="") as file:
        assert [*csv.DictReader(file)] == [
            {"version": "1", "registration": "11", "reason": one.reason},
        ]
    monkeypatch.setattr(limits, "INDEX_REFUSED_MAX", 1)
    with pytest.raises(NotIndexable, match="2 versions"):
        job._refused([made, Slice(5, 0, [RefusedVersion(9, 9, "no")])])


def test_a_slice_that_is_written_again_is_the_same(tmp_path: Path) -> None:
    """Tasks that write slices or shards may be retried after their file was written."""
    rows = batch([{"id": 1, "domain": "a"}])
    for _ in range(2):
        slices.write_slice(tmp_path, 0, [rows])
        written = shards.write_pack(tmp_path, tmp_path, Pack(0, (0,)))
    assert sorted(path.name for path in tmp_path.iterdir()) == [written.file, "slice-00000.columns"]
    assert (written.ids, written.bytes) == (1, (tmp_path / written.file).stat().st_size)


def batch(rows: list[dict[str, Any]]) -> Any:
    """Return rows as an executor receives them."""
    return pa.RecordBatch.from_pylist(
        [
            {
                "id": row["id"],
                "language": "pairs",
                "filter": orjson.dumps({"domain": row["domain"]}).decode(),
                **dict.fromkeys(COLUMNS, 0),
                "registration": row["id"] + 10,
            }
            for row in rows
        ]
    )


def entries(versions: list[dict[str, Any]]) -> Iterator[IndexEntry]:
    """Yield the entries that the hub's own builder would index."""
    compiled = CompiledFilters(limits.INDEX_CHARS_CACHED_MAX)
    for row in versions:
        if row.get("until") is None:
            extra = {
                "client": row["client_id"],
                "endpoint": row["endpoint_id"],
                "group": row.get("group_id") or 0,
                "registration": row["registration_id"],
                "report": row["report"],
                "since": row["since"],
                "until": NEVER_ENDS,
            }
            yield IndexEntry(row["id"], compiled.specs(row["language"], row["filter"]), extra)
