"""A run on a full disk."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from eventhub.base import limits
from tests.chaos.disk import MountRefused, mounted
from tests.integration.forward_world import World, world_database
from tests.integration.jobs_world import Jobs, environment

world = pytest.fixture(world_database)
INPUTS = "The disk of the data folder is full: the job's inputs do not fit."
SPEC = "The disk of the data folder is full."


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    try:
        with mounted(tmp_path / "disk", mib=1):
            yield tmp_path / "disk"
    except MountRefused as refused:
        pytest.skip(f"this machine permits no mounts: {refused}")


def fill(disk: Path, *, free: int) -> None:
    """Fill the disk so that `free` bytes remain."""
    filler = disk / "filler"
    filler.unlink(missing_ok=True)
    there = os.statvfs(disk)
    filler.write_bytes(bytes(there.f_bavail * there.f_frsize - free))


def test_a_run_on_a_full_disk_reports_that(
    world: World, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First its inputs do not fit, then, with a little more space, its spec; Spark never starts.
    No heartbeat comes meanwhile, which would find the disk low and end the run itself.
    """
    monkeypatch.setattr(limits, "JOB_HEARTBEAT_S", 600.0)
    for name, text in environment(world, small_disk).items():
        monkeypatch.setenv(name, text)
    jobs = Jobs(world, small_disk)
    details: list[str] = []
    while SPEC not in details:
        fill(small_disk, free=len(details) * 4096)
        ended, _ = jobs.perform(jobs.start())
        assert (ended.state, ended.reason) == ("failed", "storage_full")
        assert jobs.left(ended.id) == {"log.txt"}
        details.append(ended.detail)
    assert set(details) == {INPUTS, SPEC}
