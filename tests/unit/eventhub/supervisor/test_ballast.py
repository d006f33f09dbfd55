"""The ballast: allocated while space is free, released on a full disk, and allocated again."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from eventhub.eventlog.retention import disk
from eventhub.supervisor.ballast import Ballast
from tests.chaos.disk import MountRefused, fill, mounted

MIB = 1024 * 1024


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Mount a disk of 300 MiB for the test."""
    try:
        with mounted(tmp_path / "disk", 300):
            yield tmp_path / "disk"
    except MountRefused as refused:
        pytest.skip(f"this machine does not allow mounts: {refused}")


def test_ballast_is_released_on_a_full_disk_and_allocated_again_with_space(folder: Path) -> None:
    lines: list[str] = []
    ballast = Ballast(folder, lines.append)
    ballast.allocate_if_free()
    file = folder / disk.BALLAST
    assert file.stat().st_size == file.stat().st_blocks * 512 == 16 * MIB  # allocated, not sparse
    assert not ballast.short
    ballast.release_if_full()  # the disk is not full
    assert file.stat().st_size == 16 * MIB

    fill(folder / "filler")
    assert ballast.short
    ballast.release_if_full()
    assert file.stat().st_size == 0
    assert os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize >= 16 * MIB
    assert disk.measure(folder).free == 0  # what it lacks counts as used
    assert disk.measure(folder).state == "full"
    ballast.allocate_if_free()
    assert file.stat().st_size == 0  # no space is free for it

    (folder / "filler").unlink()
    assert ballast.short  # until it is back
    ballast.allocate_if_free()
    assert file.stat().st_size == 16 * MIB
    assert not ballast.short
    assert [line.split()[0] for line in lines] == ["ballast", "the", "ballast"]


def test_a_disk_without_ballast_has_its_own_free_space(folder: Path) -> None:
    found = os.statvfs(folder)
    assert disk.measure(folder) == disk.DiskSpace(
        found.f_frsize * found.f_blocks, found.f_frsize * found.f_bavail
    )


def test_an_episode_lasts_until_half_as_much_more_is_free(folder: Path) -> None:
    watched = disk.Disk(folder)
    watched.update(1)
    assert not watched.full
    fill(folder / "filler")
    watched.update(2)
    watched.update(3)
    assert watched.full
    with (folder / "filler").open("r+b") as file:
        file.truncate((folder / "filler").stat().st_size - 25 * MIB)
    watched.update(4)
    assert watched.full  # above 24 MiB, and not yet enough
    (folder / "filler").unlink()
    watched.update(5)
    watched.update(6)
    assert not watched.full
    assert watched.full_periods == [disk.FullPeriod(2, 5)]
