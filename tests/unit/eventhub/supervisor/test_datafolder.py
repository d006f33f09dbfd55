"""The data folder: which folders a hub accepts, and what it may remove there."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir

import pytest

from eventhub.supervisor import datafolder
from eventhub.supervisor.datafolder import (
    Folder,
    FolderUnusable,
    acquire_lock,
    open_folder,
    wipe_metrics,
)
from eventhub.supervisor.hub import LockedFolder, UpOptions, run
from eventhub.supervisor.postgres import Postgres

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


def fill(root: Path, *names: str) -> Path:
    """Create files and folders; names that end in / are folders."""
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
def test_folder_with_foreign_content_is_refused_and_left_unchanged(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    """DIR/metrics was deleted, and as root everything in DIR got another owner."""
    root = fill(tmp_path / "data", *names)
    before = state(root)
    with pytest.raises(FolderUnusable, match="not a hub's data folder"):
        LockedFolder.take(root)
    assert state(root) == before


@pytest.mark.parametrize(
    "names",
    [
        (),
        ("lost+found/",),
        ("lock",),
        ("lock", "run/", "metrics/", "credentials.json"),  # with external servers and a secret
        ("lock", "format", "beat.dat", "indexes/lock", "jobs/audit/"),  # of a second machine
        ("lock", "secret_key", "run/", "postgres.new/base/"),
        ("postgres.new/base/",),
        ("lock", "secret_key", "postgres/PG_VERSION", "hub.dump"),
        ("secret_key", "postgres/PG_VERSION", "notes/"),  # copied back without its lock
    ],
)
def test_empty_folder_and_a_hubs_are_accepted(tmp_path: Path, names: tuple[str, ...]) -> None:
    root = tmp_path / "data"
    root.mkdir()
    assert open_folder(fill(root, *names)) == Folder(root.resolve())


def test_only_counters_are_wiped_from_the_metrics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datafolder, "MEMORY", tmp_path / "none")
    counters = ("counter_12.db", "gauge_livesum_7.db", "histogram_12.db", "summary_3.db")
    kept = ("orders.db", "counter_of_sheep.db", "counter_12.db.bak", "report.txt", "sub/x.db")
    fill(tmp_path / "metrics", *counters, *kept)
    metrics = wipe_metrics(Folder(tmp_path), (os.geteuid(), os.getegid()))
    left = {str(path.relative_to(metrics)) for path in metrics.rglob("*") if path.is_file()}
    assert left == set(kept)


@contextmanager
def another_user() -> Iterator[None]:
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def allow_others(path: Path) -> None:
    """Let other users enter a folder of pytest, whose folders are private."""
    for folder in (path, *path.parents):
        if folder.is_relative_to(gettempdir()) and folder != Path(gettempdir()):
            folder.chmod(0o755)


def line_of(data: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Return the only line of a hub that cannot use its folder."""
    assert run(UpOptions(data, port=0)) == 1
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1, lines
    return lines[0]


@pytest.mark.parametrize("below", ["", "data", "deep/data"])
def test_file_instead_of_the_folder_is_reported_in_one_line(
    tmp_path: Path, below: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.write_text("not a folder")
    line = line_of(file / below, capsys)
    assert str(file) in line
    assert "is not a folder" in line


def test_read_only_file_system_is_reported_in_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "cannot use /proc/eventhub as data folder" in line_of(Path("/proc/eventhub"), capsys)


@as_root
@pytest.mark.parametrize("mode", [0o700, 0o755])
@pytest.mark.parametrize("names", [(), ("lock", "secret_key", "postgres/")])
def test_folder_of_another_user_is_reported_in_one_line(
    tmp_path: Path, mode: int, names: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    allow_others(tmp_path)
    root = tmp_path / "data"
    root.mkdir()
    fill(root, *names).chmod(mode)
    if names:
        (root / "lock").chmod(0o600)
    with another_user():
        line = line_of(root, capsys)
    assert str(root) in line
    assert line.endswith("Permission denied")


@as_root
def test_folder_that_cannot_be_created_is_reported_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    allow_others(tmp_path)
    with another_user():
        line = line_of(tmp_path / "data", capsys)
    assert line.endswith(f"{tmp_path / 'data'}: Permission denied")


def test_lock_that_cannot_be_created_has_path_and_reason(tmp_path: Path) -> None:
    (tmp_path / "lock").mkdir()
    with pytest.raises(FolderUnusable, match=r"lock: Is a directory"):
        acquire_lock(Folder(tmp_path))


@contextmanager
def ended(words: list[str], **streams: int) -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(words, **streams) as process:  # type: ignore[call-overload]
        try:
            yield process
        finally:
            process.kill()


def test_start_waits_for_the_lock_of_a_killed_hub_whose_id_is_reused(tmp_path: Path) -> None:
    """Its guardians hold the lock while they stop its processes. The id in the file, which may be
    reused, made the next start fail at once."""
    folder = open_folder(tmp_path / "data")
    hold = "import fcntl, sys; f = open(sys.argv[1], 'a'); fcntl.flock(f, fcntl.LOCK_EX); print(1)"
    hold += "; sys.stdout.flush(); sys.stdin.read(1)"
    words = [sys.executable, "-c", hold, str(folder.lock)]
    lines: list[str] = []
    with (
        ended(["sleep", "600"]) as other,
        ended(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as guardian,
    ):
        assert guardian.stdout is not None
        guardian.stdout.readline()
        folder.lock.write_text(f"{other.pid}\n")

        def note(line: str) -> None:
            lines.append(line)
            guardian.kill()

        os.close(acquire_lock(folder, note))
    assert lines == [f"waiting for the processes of a killed hub (process {other.pid})"]


def test_new_folder_gets_the_format_and_one_of_another_is_refused(tmp_path: Path) -> None:
    folder = datafolder.open_folder(tmp_path / "data")
    datafolder.check_format(folder)
    assert folder.format.read_text() == f"{datafolder.FORMAT}\n"
    folder.postgres.mkdir()
    datafolder.check_format(folder)
    version = folder.postgres / "PG_VERSION"
    version.write_text("17\n")
    with pytest.raises(FolderUnusable, match=r"created by PostgreSQL 17, and this hub runs"):
        datafolder.check_format(folder)
    version.unlink()
    folder.format.write_text("0\n")
    with pytest.raises(FolderUnusable, match=r"format 0, and this hub reads and writes format"):
        datafolder.check_format(folder)
    folder.format.unlink()  # as in folders of development versions
    with pytest.raises(FolderUnusable, match=r"format none.*nothing was touched"):
        datafolder.check_format(folder)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("postgres/base/1/112", b"", "is not a complete database: PG_VERSION is missing"),
        ("postgres/PG_VERSION", b"", "is not a complete database"),
        ("postgres/PG_VERSION", b"\xff\xfe", "created by PostgreSQL"),
        ("format", b"\xff\xfe", "is a data folder of format"),
        ("secret_key", b"", "holds no key"),
        ("secret_key", b"\n", "holds no key"),
        ("secret_key", b"\xff\xfe", "holds no key"),
    ],
)
def test_file_truncated_by_a_power_cut_is_refused_with_advice(
    tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    """A cluster without PG_VERSION counted as missing: another one was created, and could never
    replace it. An empty secret stopped the hub after the start; other bytes caused a traceback.
    """
    folder = open_folder(tmp_path / "data")
    datafolder.check_format(folder)
    path = folder.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    with pytest.raises(FolderUnusable, match=said):
        datafolder.check_format(folder)
        datafolder.read_secret_key(folder)
    assert path.read_bytes() == content


def test_unfinished_cluster_may_be_a_file(tmp_path: Path) -> None:
    postgres = Postgres(tmp_path / "postgres", tmp_path)
    (tmp_path / "postgres.new").write_text("a file")
    postgres.clear_unfinished()
    assert list(tmp_path.iterdir()) == []


def test_sockets_of_a_folder_with_a_comma_are_elsewhere(tmp_path: Path) -> None:
    """PostgreSQL took the path for two, and never started."""
    folder = open_folder(tmp_path / "a,b")
    sockets = datafolder.socket_folder(folder, (os.getuid(), os.getgid()))
    try:
        assert "," not in str(sockets)
        assert (folder.root / "run").exists() is False
    finally:
        datafolder.remove_socket_folder(folder, sockets)


def test_folder_whose_path_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FolderUnusable, match="its path is not UTF-8"):
        open_folder(tmp_path / os.fsdecode(b"\xff\xfe"))
    assert list(tmp_path.iterdir()) == []
