"""Fields that a newer release added are ignored; another version is refused."""

import asyncio
import json
from pathlib import Path

import pytest

from eventhub.base.compatibility import from_known_fields
from eventhub.eventlog.high_water_mark import FileMarkStore, HighWaterMark
from sparkjobs.job_spec import JobSpec, read_spec, write_spec

JOB_SPEC = JobSpec("audit", 7, {"zone": "a"}, "/in", "/work", "/out", "", 1)


def test_missing_fields_are_reported() -> None:
    with pytest.raises(TypeError, match="life"):
        from_known_fields(HighWaterMark, {"sequence": 1})


def test_a_mark_of_a_newer_release_is_read(tmp_path: Path) -> None:
    marks = FileMarkStore(tmp_path)
    mark = HighWaterMark("life", None, "segment", 7, 8)
    assert asyncio.run(marks.write("key", mark))
    [file] = tmp_path.iterdir()
    file.write_text(json.dumps({**json.loads(file.read_text()), "epoch": 3}))
    assert asyncio.run(marks.read("key")) == mark


def test_a_job_spec_of_a_newer_release_is_read_unless_it_would_be_misunderstood(
    tmp_path: Path,
) -> None:
    file = write_spec(tmp_path, JOB_SPEC)
    fields = json.loads(file.read_text())
    file.write_text(json.dumps({**fields, "cores": 2}))
    assert read_spec(file) == JOB_SPEC
    file.write_text(json.dumps({**fields, "version": 2}))
    with pytest.raises(ValueError, match="version 2; expected 1"):
        read_spec(file)
