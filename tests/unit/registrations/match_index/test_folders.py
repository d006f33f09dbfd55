"""The folders of a match index: what a crash of the builder leaves, which epochs are kept, and what
processes share.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from eventhub.event.envelope import Event
from registrations.match_index.format import builder
from registrations.match_index.format.builder import BuildProgress, EpochPlan, IndexEntry, build
from registrations.match_index.format.index import open_base
from registrations.match_index.format.manifest import folder_of, read_manifest
from registrations.matching.spec import Spec
from tests.unit.registrations.match_index.worlds import answers, built, files

QUICK = EpochPlan(durable=False)

# --- crashes of the builder ---

STAGES = ("gathered", "assembled", "written", "sealed", "published", "cleaned")
CRASH = """
import os, sys
from pathlib import Path
from registrations.match_index.format.builder import EpochPlan, IndexEntry, build
from registrations.matching.spec import Spec

def crash(progress):
    if progress.stage == sys.argv[2]:
        os._exit(7)

entries = [IndexEntry(id, (Spec(pairs=(("x", 2),)),)) for id in range(50)]
build(Path(sys.argv[1]), entries, EpochPlan(shard_entries=20, progress=crash))
"""


def test_after_a_crash_the_old_or_the_new_index_is_complete(tmp_path: Path) -> None:
    event = Event("", "", {"x": [1, 2]})
    for stage in STAGES:
        root = tmp_path / stage
        build(root, [IndexEntry(1, (Spec(pairs=(("x", 1),)),))])
        ran = subprocess.run([sys.executable, "-c", CRASH, root, stage], check=False)
        assert ran.returncode == 7
        is_new = stage in ("published", "cleaned")
        base = open_base(root)
        base.verify()
        assert answers(base, "python", event) == ([*range(50)] if is_new else [1])
        build(root, [IndexEntry(3, (Spec(pairs=(("x", 2),)),))])
        assert answers(open_base(root), "python", event) == [3]
        left = {path.name for path in root.iterdir() if path.is_dir()}
        whole = {folder_of(epoch) for epoch in ((1, 2, 3) if is_new else (1, 2))}
        assert left == whole, stage


def test_a_build_that_fails_leaves_nothing(tmp_path: Path) -> None:
    build(tmp_path, [IndexEntry(1, (Spec(),))], QUICK)
    before = files(tmp_path)

    def full(progress: BuildProgress) -> None:
        if progress.stage == "written":
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        build(tmp_path, [IndexEntry(1, (Spec(),))], QUICK._replace(progress=full))
    assert files(tmp_path) == before


def test_two_older_epochs_are_retained_and_open_ones_stay_readable(tmp_path: Path) -> None:
    first = built(tmp_path, {0: Spec()})
    for number in range(1, 6):
        built(tmp_path, {number: Spec()})
    assert answers(first, "python", Event("", "", {})) == [0]
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == [
        folder_of(epoch) for epoch in (4, 5, 6)
    ]
    assert read_manifest(tmp_path / folder_of(5)).epoch == 5


def test_an_empty_index_can_be_built_and_opened(tmp_path: Path) -> None:
    base = built(tmp_path, {})
    assert (len(base), base.shards, base.positions_of(1)) == (0, [], [])


def test_two_builders_wait_for_each_other(tmp_path: Path) -> None:
    stages: list[str] = []

    def inner(progress: BuildProgress) -> None:
        stages.append(progress.stage)
        with (tmp_path / "lock").open() as file, pytest.raises(BlockingIOError):
            builder.fcntl.flock(file, builder.fcntl.LOCK_EX | builder.fcntl.LOCK_NB)

    build(tmp_path, [IndexEntry(1, (Spec(),))], QUICK._replace(progress=inner))
    assert stages == [*STAGES]


# --- processes ---

CHILD = """
import sys
from pathlib import Path
from eventhub.event.envelope import Event
from registrations.filters.evaluate import no_supertypes
from registrations.match_index.format.index import open_base
from registrations.match_index.engines.available import new_engine

[shard] = open_base(Path(sys.argv[1])).shards
for n in range(200):
    assert len(new_engine("python", shard, no_supertypes).match(Event("", "", {"x": n})))
shard.verify()
print("mapped", flush=True)
sys.stdin.readline()
for line in Path("/proc/self/smaps").read_text().split("\\n\\n"):
    pass
size = shared = 0
mine = False
for line in Path("/proc/self/smaps").read_text().splitlines():
    if "-" in line.split(" ")[0] and ":" not in line.split(" ")[0]:
        mine = line.endswith("shard-0000.idx")
    elif mine and line.startswith("Rss:"):
        size += int(line.split()[1])
    elif mine and line.startswith("Pss:"):
        shared += int(line.split()[1])
print(size, shared, flush=True)
"""


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="Linux says whose pages are")
def test_two_processes_share_the_pages_of_one_index(tmp_path: Path) -> None:
    build(
        tmp_path, (IndexEntry(id, (Spec(pairs=(("x", id % 200),)),)) for id in range(20_000)), QUICK
    )
    both = [
        subprocess.Popen(
            [sys.executable, "-c", CHILD, tmp_path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ},
        )
        for _ in range(2)
    ]
    for child in both:
        assert child.stdout and child.stdout.readline() == "mapped\n"
    size, shared = map(int, both[0].communicate("go\n")[0].split())
    both[1].communicate("go\n")
    assert size > 200  # kB
    assert shared <= 0.6 * size
