"""Which folders a hub takes for its data, and what it may remove there."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir

import pytest

from eventhub.up import datafolder
from eventhub.up.datafolder import (
    Folder,
    FolderUnusable,
    acquire_lock,
    open_folder,
    wipe_metrics,
)
from eventhub.up.hub import Options, Place, run

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")


def fill(root: Path, *names: str) -> Path:
    """Names that end in / are folders."""
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            path.mkdir()
        else:
            path.write_text(name)
    return root


def state(root: Path) -> dict[str, tuple[int, int, int]]:
    found = {path: path.stat() for path in (root, *root.rglob("*"))}
    return {str(path): (s.st_uid, s.st_mode, s.st_mtime_ns) for path, s in found.items()}


@pytest.mark.parametrize(
    "names",
    [
        ("letter.txt",),
        ("metrics/report.txt", "metrics/counter_1.db"),
        ("postgres/PG_VERSION",),  # another server's data
        ("postgres/PG_VERSION", "redis/", "run/"),
        ("lock", "package.json"),
        ("secret_key", "app.py"),
        ("run/", "metrics/", "credentials.json"),
    ],
)
def test_folder_of_something_else_is_refused_and_left_as_it_is(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    """DIR/metrics was deleted, and as root everything in DIR changed hands."""
    root = fill(tmp_path / "data", *names)
    before = state(root)
    with pytest.raises(FolderUnusable, match="not a hub's data folder"):
        Place.take(root)
    assert state(root) == before


@pytest.mark.parametrize(
    "names",
    [
        (),
        ("lost+found/",),
        ("lock",),
        ("lock", "run/", "metrics/", "credentials.json"),  # with servers and a secret given
        ("lock", "secret_key", "run/", "postgres.new/base/"),
        ("postgres.new/base/",),
        ("lock", "secret_key", "postgres/PG_VERSION", "hub.dump"),
        ("secret_key", "postgres/PG_VERSION", "notes/"),  # copied back without its lock
    ],
)
def test_empty_folder_and_a_hubs_are_taken(tmp_path: Path, names: tuple[str, ...]) -> None:
    root = tmp_path / "data"
    root.mkdir()
    assert open_folder(fill(root, *names)) == Folder(root.resolve())


def test_only_counters_are_wiped_from_the_metrics(tmp_path: Path) -> None:
    counters = ("counter_12.db", "gauge_livesum_7.db", "histogram_12.db", "summary_3.db")
    kept = ("orders.db", "counter_of_sheep.db", "counter_12.db.bak", "report.txt", "sub/x.db")
    fill(tmp_path / "metrics", *counters, *kept)
    metrics = wipe_metrics(Folder(tmp_path))
    left = {str(path.relative_to(metrics)) for path in metrics.rglob("*") if path.is_file()}
    assert left == set(kept)


@contextmanager
def somebody_else() -> Iterator[None]:
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def let_others_in(path: Path) -> None:
    """To a folder of pytest's own, which are private."""
    for folder in (path, *path.parents):
        if folder.is_relative_to(gettempdir()) and folder != Path(gettempdir()):
            folder.chmod(0o755)


def said(data: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """The one line of a hub that cannot have its folder."""
    assert run(Options(data, port=0)) == 1
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1, lines
    return lines[0]


@pytest.mark.parametrize("below", ["", "data", "deep/data"])
def test_file_in_the_place_of_the_folder_is_said_in_one_line(
    tmp_path: Path, below: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.write_text("not a folder")
    line = said(file / below, capsys)
    assert str(file) in line
    assert "is not a folder" in line


def test_file_system_that_takes_nothing_is_said_in_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "cannot use /proc/eventhub as data folder" in said(Path("/proc/eventhub"), capsys)


@as_root
@pytest.mark.parametrize("mode", [0o700, 0o755])
@pytest.mark.parametrize("names", [(), ("lock", "secret_key", "postgres/")])
def test_folder_of_another_user_is_said_in_one_line(
    tmp_path: Path, mode: int, names: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    let_others_in(tmp_path)
    root = tmp_path / "data"
    root.mkdir()
    fill(root, *names).chmod(mode)
    if names:
        (root / "lock").chmod(0o600)
    with somebody_else():
        line = said(root, capsys)
    assert str(root) in line
    assert line.endswith("Permission denied")


@as_root
def test_folder_that_cannot_be_made_is_said_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    let_others_in(tmp_path)
    with somebody_else():
        line = said(tmp_path / "data", capsys)
    assert line.endswith(f"{tmp_path / 'data'}: Permission denied")


def test_lock_that_cannot_be_made_has_path_and_reason(tmp_path: Path) -> None:
    (tmp_path / "lock").mkdir()
    with pytest.raises(FolderUnusable, match=r"lock: Is a directory"):
        acquire_lock(Folder(tmp_path))


def test_new_folder_gets_the_format_and_one_of_another_is_refused(tmp_path: Path) -> None:
    folder = datafolder.open_folder(tmp_path / "data")
    datafolder.check_format(folder)
    assert folder.format.read_text() == f"{datafolder.FORMAT}\n"
    folder.postgres.mkdir()
    datafolder.check_format(folder)
    folder.format.write_text("0\n")
    with pytest.raises(FolderUnusable, match=r"format 0, and this hub reads and writes format"):
        datafolder.check_format(folder)
    folder.format.unlink()  # as development versions made them
    with pytest.raises(FolderUnusable, match=r"format none.*nothing was touched"):
        datafolder.check_format(folder)
