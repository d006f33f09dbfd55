"""An archive on the disk of the hub's data does not use its last free space."""

from pathlib import Path

import pytest

from eventhub.eventlog.archive.folder import ArchiveFolder
from eventhub.eventlog.errors import ArchiveUnavailable
from eventhub.eventlog.retention import disk
from tests.chaos.disk import MountRefused, mounted

LARGE_MIB = 1024


def test_nothing_is_archived_on_a_low_disk_until_there_is_space(tmp_path: Path) -> None:
    try:
        with mounted(tmp_path / "disk", LARGE_MIB):
            root = tmp_path / "disk" / "archive"
            root.mkdir()
            filler = root.parent / "filler"
            space = disk.measure(root)
            assert space.state == "ok", "the disk of this test is too small"
            place = ArchiveFolder(str(root))
            with filler.open("wb") as file:
                file.truncate(0)
                left = space.free - disk.low_bytes(space.total)
                for _ in range(left // (1 << 20) + 2):
                    file.write(bytes(1 << 20))
            with pytest.raises(ArchiveUnavailable, match="low on space"), place.create("segment"):
                pytest.fail("a file was begun")
            filler.unlink()
            with place.create("segment") as (path, file):
                file.write(b"rows")
            place.publish(path, "segment")
            assert place.read("segment") == b"rows"
    except MountRefused as refused:
        pytest.skip(f"this machine lets us mount nothing: {refused}")
