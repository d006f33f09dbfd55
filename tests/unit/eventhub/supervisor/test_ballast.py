"""Ballast: there as long as there is room, thrown off on a full disk, and back by itself."""

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
    """On a disk of its own, of 300 MiB."""
    try:
        with mounted(tmp_path / "disk", 300):
            yield tmp_path / "disk"
    except MountRefused as refused:
        pytest.skip(f"this machine lets us mount nothing: {refused}")


def test_ballast_is_thrown_off_on_a_full_disk_and_comes_back_with_space(folder: Path) -> None:
    said: list[str] = []
    ballast = Ballast(folder, said.append)
    ballast.take_if_there_is_room()
    file = folder / disk.BALLAST
    assert file.stat().st_size == file.stat().st_blocks * 512 == 16 * MIB  # really taken
    assert not ballast.short
    ballast.throw_off_if_short()  # the disk is not full
    assert file.stat().st_size == 16 * MIB

    fill(folder / "filler")
    assert ballast.short
    ballast.throw_off_if_short()
    assert file.stat().st_size == 0
    assert os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize >= 16 * MIB
    assert disk.look(folder).free == 0  # what it lacks counts as used
    assert disk.look(folder).state == "full"
    ballast.take_if_there_is_room()
    assert file.stat().st_size == 0  # there is no room beside it

    (folder / "filler").unlink()
    assert ballast.short  # until it is back
    ballast.take_if_there_is_room()
    assert file.stat().st_size == 16 * MIB
    assert not ballast.short
    assert [line.split()[0] for line in said] == ["ballast", "the", "ballast"]


def test_a_disk_without_ballast_is_taken_as_it_is(folder: Path) -> None:
    found = os.statvfs(folder)
    assert disk.look(folder) == disk.DiskSpace(
        found.f_frsize * found.f_blocks, found.f_frsize * found.f_bavail
    )


def test_an_episode_lasts_until_there_is_half_as_much_again(folder: Path) -> None:
    watched = disk.Disk(folder)
    watched.look(1)
    assert not watched.full
    fill(folder / "filler")
    watched.look(2)
    watched.look(3)
    assert watched.full
    with (folder / "filler").open("r+b") as file:
        file.truncate((folder / "filler").stat().st_size - 25 * MIB)
    watched.look(4)
    assert watched.full  # above the mark of 24 MiB, and not enough to go on
    (folder / "filler").unlink()
    watched.look(5)
    watched.look(6)
    assert not watched.full
    assert watched.episodes == [disk.Episode(2, 5)]
