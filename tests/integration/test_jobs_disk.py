"""A job's run on a disk that is full."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.disk import MountRefused, mounted
from tests.integration.forward_world import World, world_database
from tests.integration.jobs_world import Jobs, environment

world = pytest.fixture(world_database)
INPUTS = "The disk of the data folder is full: the job's inputs do not fit."
ORDER = "The disk of the data folder is full."


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    try:
        with mounted(tmp_path / "disk", mib=1):
            yield tmp_path / "disk"
    except MountRefused as refused:
        pytest.skip(f"this machine lets us mount nothing: {refused}")


def fill(disk: Path, *, room: int) -> None:
    """So that `room` more bytes fit."""
    filler = disk / "filler"
    filler.unlink(missing_ok=True)
    there = os.statvfs(disk)
    filler.write_bytes(bytes(there.f_bavail * there.f_frsize - room))


def test_a_run_that_finds_no_room_says_so(
    world: World, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For its inputs, and with a little more room for its order: Spark is not started then."""
    for name, text in environment(world, small_disk).items():
        monkeypatch.setenv(name, text)
    jobs = Jobs(world, small_disk)
    details: list[str] = []
    while ORDER not in details:
        fill(small_disk, room=len(details) * 4096)
        ended, _ = jobs.done(jobs.begun())
        assert (ended.state, ended.reason) == ("failed", "storage_full")
        assert jobs.left(ended.id) == {"log.txt"}
        details.append(ended.detail)
    assert set(details) == {INPUTS, ORDER}
