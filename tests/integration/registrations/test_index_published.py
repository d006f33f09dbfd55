"""Match indexes that were built elsewhere from an export are published, or refused and then nothing
changes; and the job that builds them, by Spark and without.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventhub.base import limits
from eventhub.base.clock import SystemClock
from registrations.match_index.epochs.build import build_stream
from registrations.match_index.epochs.errors import IndexOutdated
from registrations.match_index.epochs.facts import StreamSnapshot
from registrations.match_index.epochs.folder import index_root
from registrations.match_index.epochs.publish import BuiltShards, publish_stream
from registrations.match_index.epochs.verify import verify_stream
from registrations.match_index.format.errors import IndexDamaged
from registrations.match_index.format.manifest import folder_of, read_manifest
from registrations.match_index.format.versions import COLUMNS
from sparkjobs.match_index.shards import Pack, write_pack
from sparkjobs.match_index.slices import write_slice
from sparkjobs.result import read_result
from sparkjobs.runs import statements
from sparkjobs.runs.cancellation import StopSignal
from sparkjobs.runs.context import RunContext
from sparkjobs.runs.execute import RunnerSettings, RunObserver, perform
from sparkjobs.runs.export.snapshot import ExportRequest, export_inputs, read_snapshot
from sparkjobs.runs.jobs import MATCH_INDEX
from sparkjobs.runs.launch import SparkSettings
from sparkjobs.runs.match_index import build_locally
from sparkjobs.runs.statements import Run, RunRequest
from tests.integration.forward_world import World, place, world_database

world = pytest.fixture(scope="module")(world_database)
Connection = psycopg.Connection[Any]


@pytest.fixture
def connection(world: World) -> Iterator[Connection]:
    with psycopg.connect(world.url, autocommit=True) as connection:
        yield connection


class Elsewhere:
    """The exported versions of a stream, and shards of them."""

    def __init__(self, world: World, stream_id: int, folder: Path) -> None:
        self.stream_id = stream_id
        self._folder = folder
        self.inputs = folder / "inputs"
        tables = MATCH_INDEX.tables
        export_inputs(
            ExportRequest(world.url, "", self.inputs, tables, stream_ids=(stream_id,)),
            lambda *_: None,
        )

    @property
    def moment(self) -> StreamSnapshot:
        return read_snapshot(self.inputs).moments[self.stream_id]

    def shards(self, count: int = 1) -> BuiltShards:
        """Build shards; none of the versions has ended."""
        [file] = (self.inputs / "versions").glob("*.parquet")
        found = pq.read_table(file).to_pylist()
        files = []
        for number in range(count):
            made = [_indexed(row) for row in found[number::count]]
            write_slice(self._folder, number, pa.Table.from_pylist(made).to_batches())
            written = write_pack(self._folder, self._folder, Pack(number, (number,)))
            files.append(self._folder / written.file)
        return BuiltShards(self.stream_id, self.moment, files)


def _indexed(row: dict[str, Any]) -> dict[str, Any]:
    assert row["until"] is None
    columns = {
        "client": row["client_id"],
        "endpoint": row["endpoint_id"],
        "group": row["group_id"] or 0,
        "registration": row["registration_id"],
        "report": int(row["report"]),
        "since": row["since"],
        "until": (1 << 63) - 1,
    }
    assert [*columns] == [*COLUMNS]
    return {"id": row["id"], "language": row["language"], "filter": row["filter"], **columns}


def files(root: Path, epoch: int) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (root / folder_of(epoch)).glob("*.idx")}


def test_an_index_built_from_an_export_equals_the_hubs_own(
    world: World, connection: Connection, tmp_path: Path
) -> None:
    stream_id = world.stream()
    endpoints = world.endpoints(5)
    world.register(stream_id, endpoints * 4, "a")
    [registration] = world.register(stream_id, endpoints[:1])
    world.emit(stream_id, "a", "b")
    place(world, stream_id, 1)
    made = Elsewhere(world, stream_id, tmp_path)
    assert made.moment.after == 1
    assert made.moment.strategy == "auto"
    published = publish_stream(connection, tmp_path / "one", made.shards())
    local = build_stream(connection, tmp_path / "other", stream_id)
    one, other = (index_root(tmp_path / name, stream_id) for name in ("one", "other"))
    assert files(one, published.epoch) == files(other, local.epoch)
    assert published[:5] == local[:5]
    assert {**local.facts, "xmin": 0} == {**read_manifest(one).facts, "xmin": 0}
    world.change(registration, stream_id, "b")
    assert verify_stream(connection, tmp_path / "one", stream_id) == []
    two = made.shards(2)
    again = publish_stream(connection, tmp_path / "one", two)
    assert (again.epoch, len(again.parts), again.ids) == (2, 2, 21)
    assert all(path.exists() for path in two.files)
    assert verify_stream(connection, tmp_path / "one", stream_id) == []
    on = build_stream(connection, tmp_path / "one", stream_id)
    assert (on.epoch, on.ids) == (3, 22), "the hub continues from it"


def test_refused_shards_leave_the_index_unchanged(
    world: World, connection: Connection, tmp_path: Path
) -> None:
    stream_id = world.stream()
    [endpoint] = world.endpoints()
    world.register(stream_id, [endpoint] * 9, "a")
    made = Elsewhere(world, stream_id, tmp_path)
    good = made.shards(2)
    root = index_root(tmp_path, stream_id)
    publish_stream(connection, tmp_path, good)
    before = read_manifest(root)

    def refused(shards: BuiltShards, error: type[Exception]) -> None:
        with pytest.raises(error):
            publish_stream(connection, tmp_path, shards)
        assert read_manifest(root) == before
        assert [path.name for path in root.glob("epoch-*")] == [before.folder]

    twice = [good.files[0], good.files[0]]
    refused(good._replace(files=twice), IndexDamaged)
    spoilt = bytearray(good.files[1].read_bytes())
    spoilt[-100] ^= 1
    for name, data in {"altered": spoilt, "cut": spoilt[:-64], "empty": b""}.items():
        (tmp_path / name).write_bytes(data)
        refused(good._replace(files=[good.files[0], tmp_path / name]), IndexDamaged)
    refused(good._replace(files=[tmp_path / "none"]), FileNotFoundError)
    refused(good._replace(moment=made.moment._replace(history="another")), IndexOutdated)
    world.register(stream_id, [endpoint])
    newer = build_stream(connection, tmp_path, stream_id)
    with pytest.raises(IndexOutdated):
        publish_stream(connection, tmp_path, good)
    assert read_manifest(root).epoch == newer.epoch == 2


def test_spark_is_not_used_for_few_filters(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream_id = world.stream(matching="index")
    [endpoint] = world.endpoints()
    registrations = world.register(stream_id, [endpoint] * 20, "a")
    place(world, stream_id, 0)

    def built(engine: str, spark_from: int) -> str:
        """Build, and return why the local builder was used; "" if Spark is to build."""
        monkeypatch.setattr(limits, "SPARK_INDEX_MIN", spark_from)
        params = {"stream": "orders", "stream_id": stream_id, "engine": engine}
        folders = (tmp_path / name for name in ("result", "inputs", "work"))
        hooks = {"report": lambda *_: None, "publishing": lambda: None}
        context = RunContext(1, params, tmp_path, world.url, "", *folders, **hooks)
        result = build_locally(context)
        return str(result.details["reason"]) if result else ""

    assert built("spark", 21) == ""
    assert built("auto", 20) == ""
    assert built("auto", 21) == "built locally: 20 registrations; Spark pays off from 21"
    world.change(registrations[0], stream_id, "b")
    reason = "built locally: 2 versions changed since epoch 1; Spark pays off from 3"
    assert built("auto", 3) == reason
    assert built("local", 1) == "built locally: 0 versions changed since epoch 2; as requested"


def test_the_job_builds_by_spark_or_reports_why_not(
    world: World, connection: Connection, tmp_path: Path
) -> None:
    stream_id = world.stream(matching="index")
    [endpoint] = world.endpoints()
    world.register(stream_id, [endpoint] * 30, "a")
    place(world, stream_id, 0)
    hub = RunnerSettings(world.url, tmp_path, "", SparkSettings("local[1]", "1g", "", ""))

    def done(engine: str) -> Run:
        params = {"stream": "orders", "stream_id": stream_id, "stream_ids": [stream_id]}
        run = statements.request(
            connection, RunRequest("match_index", {**params, "engine": engine}, "command")
        )
        assert statements.start(connection, run)
        begun = statements.find(connection, run)
        assert begun is not None
        return perform(hub, begun, RunObserver(StopSignal(), lambda progress: None, SystemClock()))

    local = done("auto")
    assert (local.state, local.engine) == ("completed", "local builder"), local.detail
    assert "built locally: 30 registrations; Spark pays off from " in local.summary
    assert local.figures["epoch"] == 1
    spark = done("spark")
    assert (spark.state, spark.engine) == ("completed", "spark local[1]"), spark.detail
    assert spark.figures == {**local.figures, "epoch": 2}
    root = index_root(tmp_path, stream_id)
    assert files(root, 1) == files(root, 2)
    assert read_manifest(root).facts.keys() == {
        *("form", "stream", "history", "after", "xmin", "refused")
    }
    assert verify_stream(connection, tmp_path, stream_id) == []
    folder = tmp_path / "jobs" / "match_index" / f"{spark.id:08}"
    stored = read_result(folder / "result")
    assert [file.name for file in stored.files] == ["refused.csv"]
    assert stored.result.details["epoch"] == 2
    assert not (folder / "work").exists()
    world.sql("UPDATE streams SET matching = 'compile' WHERE id = %s", stream_id)
    refused = done("spark")
    assert (refused.state, refused.reason) == ("failed", "match_index_not_used")
