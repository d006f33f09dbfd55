"""The monitor of jobs whose processes are killed finds planted faults: an incomplete result, an
incomplete index, and the remains of a run.
"""

from pathlib import Path

import pytest

from registrations.filters.pairs import parse_pairs
from registrations.match_index.epochs.folder import index_root
from registrations.match_index.format.builder import EpochPlan, IndexEntry, build
from registrations.match_index.format.manifest import read_manifest
from registrations.matching.spec import spec_of
from sparkjobs.result import NAME, JobResult, read_result, write_result
from tests.chaos.spark import sight
from tests.chaos.until import until

STREAM = 7


def result_in(data: Path, run: int, text: str = "a") -> Path:
    """Return a whole result, as a run leaves it."""
    folder = data / "jobs" / "audit" / f"{run:08}" / "result"
    folder.mkdir(parents=True)
    (folder / "plan.csv").write_text(text)
    (folder / "partitions.csv").write_text(str(run))
    write_result(folder, JobResult("done", {"events": 3, "epoch": run}))
    return folder


def index_in(data: Path) -> Path:
    """Return the file of an index."""
    root = index_root(data, STREAM)
    spec = spec_of(parse_pairs({"attributes": {"a": 1}}))
    build(root, [IndexEntry(1, (spec,))], EpochPlan(durable=False))
    return next((root / read_manifest(root).folder).glob("*.idx"))


async def test_what_is_whole_is_no_problem(tmp_path: Path) -> None:
    result_in(tmp_path, 1)
    index_in(tmp_path)
    with sight.watched(tmp_path, STREAM) as problems:
        late = result_in(tmp_path / "elsewhere", 2)
        late.parent.rename(tmp_path / "jobs" / "audit" / "00000002")
        index_in(tmp_path)
    assert problems == []
    assert sight.leftovers(tmp_path, "audit") == []


@pytest.mark.parametrize("planted", ["nothing says", "altered", "gone", "index"])
async def test_what_is_not_whole_is_seen_once(tmp_path: Path, planted: str) -> None:
    with sight.watched(tmp_path, STREAM) as problems:
        if planted == "index":
            file = index_in(tmp_path)
            file.write_bytes(file.read_bytes()[:-64])
        else:
            folder = result_in(tmp_path / "elsewhere", 1)
            if planted == "altered":
                (folder / "plan.csv").write_text("b")
            else:
                (folder / (NAME if planted == "nothing says" else "plan.csv")).unlink()
            (tmp_path / "jobs" / "audit").mkdir(parents=True)
            folder.parent.rename(tmp_path / "jobs" / "audit" / "00000001")
        await until(lambda: bool(problems), "the planted fault to be seen", 60.0)
    assert len(problems) == 1


def test_what_a_run_left_is_named(tmp_path: Path) -> None:
    (result_in(tmp_path, 1).parent / "_unfinished").mkdir()
    assert sight.leftovers(tmp_path, "audit") == ["jobs/audit/00000001/_unfinished"]
    assert sight.leftovers(tmp_path, "retention") == [], "those may be under way"


def test_results_are_the_same_but_for_what_moves(tmp_path: Path) -> None:
    found = []
    for run, text in ((1, "a"), (2, "a"), (3, "b")):
        folder = result_in(tmp_path, run, text)
        found.append(sight.fingerprint(read_result(folder), folder))
    assert found[0] == found[1] != found[2]
    assert found[0].keys() == {"events", "plan.csv"}
