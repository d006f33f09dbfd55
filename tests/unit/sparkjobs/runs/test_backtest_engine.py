"""Which back-tests do without Spark."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sparkjobs.job_spec import JobSpec
from sparkjobs.runs.backtest import is_local
from sparkjobs.runs.errors import HistoryTooLarge
from sparkjobs.tables import SEGMENTS

ONE = {"first": 1, "last": 200_000, "bytes": 64 * 1024 * 1024, "source": "archive"}


def spec_of(folder: Path, segments: list[dict[str, Any]], **params: Any) -> JobSpec:
    (folder / "segments").mkdir()
    table = pa.Table.from_pylist(segments, schema=SEGMENTS)
    pq.write_table(table, folder / "segments" / "part.parquet")
    return JobSpec("backtest", 1, params, str(folder), "", "", "", 0)


@pytest.mark.parametrize(
    ("segments", "local"),
    [
        ([], True),
        ([ONE], True),
        ([ONE, {**ONE, "source": "none"}, {**ONE, "first": 2, "last": 1, "bytes": 0}], True),
        ([{**ONE, "last": 200_001}], False),
        ([{**ONE, "bytes": ONE["bytes"] + 1}], False),
        ([{**ONE, "last": 1, "bytes": 9}] * 200, True),
        ([{**ONE, "last": 1, "bytes": 9}] * 201, False),
    ],
)
def test_a_little_history_is_searched_without_spark(
    tmp_path: Path, segments: list[dict[str, Any]], local: bool
) -> None:
    assert is_local(spec_of(tmp_path, segments)) is local


def test_the_engine_may_be_chosen(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, [ONE] * 2)
    chosen = {name: is_local(spec._replace(params={"engine": name})) for name in ("local", "spark")}
    assert chosen == {"local": True, "spark": False}
    assert not is_local(spec._replace(params={"engine": "auto"}))


def test_one_process_searches_no_more_than_it_can_hold(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, [ONE] * 8, engine="local")
    assert is_local(spec)
    (tmp_path / "more").mkdir()
    more = spec_of(tmp_path / "more", [*[ONE] * 8, {**ONE, "bytes": 1}], engine="local")
    with pytest.raises(HistoryTooLarge):
        is_local(more)
