"""The data folder: its lock, its subfolders, its secret key, and a folder for sockets with short
enough paths. Plain module.
"""

import fcntl
import hashlib
import os
import re
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from eventhub.base import limits
from eventhub.supervisor.postgres import SOCKET
from eventhub.supervisor.programs import POSTGRES_MAJOR

SOCKET_PATH_BYTES_MAX = 107  # sun_path of Linux, without its final NUL
LOCK_POLL_S = 0.1
LOCK_REPORT_S = 1.0  # of waiting, after which a line reports it
FORMAT = "1"  # of the folder; eventhub/postgresql/schema.py has that of the tables
MEMORY = Path("/dev/shm")  # noqa: S108 - a file system in memory; the folder used is checked
# two of them make a folder a hub's: that of a machine without servers has `lock` and `format`
MARKERS = frozenset({"lock", "secret_key", "postgres", "format"})
FIRST_MARKERS = frozenset({"lock", "secret_key", "postgres.new"})  # of an interrupted first start
OTHER_NAMES = frozenset(
    {"archive", "ballast", "beat", "credentials.json", "format.new", "metrics", "probe"}
    | {"run", "secret_key.new", "servers.log"}
)
NAMES = MARKERS | FIRST_MARKERS | OTHER_NAMES
IGNORED_NAMES = frozenset({"lost+found"})  # in the root of a file system
COUNTERS = re.compile(r"(counter|gauge_[a-z]+|histogram|summary)_[0-9]+\.db")  # Prometheus's names


class FolderUnusable(Exception):
    """The data folder cannot be used; the message has its path and the reason."""


class FolderInUse(FolderUnusable):
    """Another hub uses this data folder."""


class Folder(NamedTuple):
    """The paths below the data folder; `sockets` may be elsewhere, see `socket_folder`."""

    root: Path

    @property
    def lock(self) -> Path:
        return self.root / "lock"

    @property
    def secret_key(self) -> Path:
        return self.root / "secret_key"

    @property
    def credentials(self) -> Path:
        return self.root / "credentials.json"

    @property
    def postgres(self) -> Path:
        return self.root / "postgres"

    @property
    def archive(self) -> Path:
        return self.root / "archive"

    @property
    def format(self) -> Path:
        return self.root / "format"


@contextmanager
def usable(root: Path) -> Iterator[None]:
    """Turn errors of the operating system below `root` into FolderUnusable."""
    try:
        yield
    except (FileExistsError, NotADirectoryError) as error:
        raise FolderUnusable(
            f"cannot use {root} as data folder: {error.filename or root} is not a folder"
        ) from error
    except OSError as error:
        raise FolderUnusable(
            f"cannot use {root} as data folder: {error.filename or root}: {error.strerror}"
        ) from error


def open_folder(path: Path) -> Folder:
    """Return the folder, created as a private one if it is missing. Folders above it retain their
    permissions, and a folder with other content than a hub's is left unchanged. Raises
    FolderUnusable.
    """
    root = path.absolute()
    if str(root) != os.fsencode(root).decode(errors="replace"):
        raise FolderUnusable(f"cannot use {str(root)!r} as data folder: its path is not UTF-8")
    with usable(root):
        root.parent.mkdir(parents=True, exist_ok=True)
        root.mkdir(mode=0o700, exist_ok=True)
        root = root.resolve()
        names = {entry.name for entry in root.iterdir()} - IGNORED_NAMES
    if names and not _is_hubs(names):
        raise FolderUnusable(
            f"{root} is not empty and not a hub's data folder, which has two of lock, secret_key, "
            "postgres and format; nothing was touched. "
            "Choose a new or empty folder: make run DATA=…"
        )
    return Folder(root)


def _is_hubs(names: set[str]) -> bool:
    """Return whether these names are a hub's: two markers, or after an interrupted first start one,
    and nothing foreign. `postgres` alone is not enough: it may be another server's data.
    """
    return len(names & MARKERS) >= 2 or bool(names & FIRST_MARKERS and names <= NAMES)


def acquire_lock(folder: Folder, say: Callable[[str], None] = lambda line: None) -> int:
    """Lock the folder while the descriptor, or a copy in a guardian, is open. Waits for a killed
    hub whose processes are still stopping; then `say` gets a line. Raises FolderInUse if another
    hub runs, FolderUnusable for errors of the operating system.
    """
    with usable(folder.root):
        fd = os.open(folder.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        _await_lock(fd, folder, say)
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
    return fd


def release_lock(fd: int) -> None:
    """Empty the lock file and release it: the id of a process that has ended may be reused, and a
    reader of the file would send signals to the wrong process.
    """
    with suppress(OSError):  # of a failing disk
        os.ftruncate(fd, 0)
    os.close(fd)


def _await_lock(fd: int, folder: Folder, say: Callable[[str], None]) -> None:
    began = time.monotonic()
    reported = False
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            holder = os.pread(fd, 32, 0).decode("ascii", "replace").strip()
            waited_s = time.monotonic() - began
            if _holds(holder, fd) or waited_s >= limits.LEFTOVERS_END_S_MAX:
                os.close(fd)
                raise FolderInUse(
                    f"{folder.root} is in use by another hub (process {holder or 'unknown'}); "
                    "stop it first, or choose another folder: make run DATA=… PORT=…"
                ) from None
            if waited_s >= LOCK_REPORT_S and not reported:
                reported = True
                say(f"waiting for the processes of a killed hub (process {holder or 'unknown'})")
            time.sleep(LOCK_POLL_S)


def _holds(pid: str, fd: int) -> bool:
    """Return whether that process has the lock file open. The id of a killed hub may be reused, but
    only a hub has this file open, and its guardians have other ids.
    """
    lock = os.fstat(fd)
    if pid == str(os.getpid()):
        return False  # the id was reused for this process
    try:
        process = Path(f"/proc/{int(pid)}")
        if (process / "stat").read_text().rpartition(")")[2].split()[0] in "ZX":
            return False
        opened = list((process / "fd").iterdir())
    except PermissionError:
        return True  # of another user, so it cannot be checked; presumably a hub
    except (OSError, ValueError):
        return False
    return any(_is_file(path, lock) for path in opened)


def _is_file(path: Path, file: os.stat_result) -> bool:
    try:
        return os.path.samestat(path.stat(), file)
    except OSError:
        return False  # closed meanwhile


def check_format(folder: Folder) -> None:
    """Write this hub's format number into a new folder. Raises FolderUnusable, with nothing
    touched, for a folder of another format or of another PostgreSQL, or with an incomplete
    database.
    """
    version = folder.postgres / "PG_VERSION"
    with usable(folder.root):
        exists = version.exists()
        major = _text(version) if exists else POSTGRES_MAJOR
        incomplete = not exists and folder.postgres.exists() and any(folder.postgres.iterdir())
        if not folder.format.exists() and not folder.postgres.exists():
            _write_once(folder.format, FORMAT)
        found = _text(folder.format) if folder.format.exists() else "none"
    if incomplete or not major:
        raise FolderUnusable(
            f"{folder.postgres} is not a complete database: PG_VERSION is missing or empty; "
            "nothing was touched. Restore the folder from a backup (docs/backup.md), or choose a "
            "new data folder: make run DATA=…"
        )
    if major != POSTGRES_MAJOR:
        raise FolderUnusable(
            f"{folder.postgres} was created by PostgreSQL {major[:20]}, and this hub runs "
            f"PostgreSQL {POSTGRES_MAJOR}; nothing was touched. Run the version that created it, "
            "or choose a new folder: make run DATA=…"
        )
    if found != FORMAT:
        raise FolderUnusable(
            f"{folder.root} is a data folder of format {found[:20]}, and this hub reads and writes "
            f"format {FORMAT}; nothing was touched. Run the version that created it, or choose a "
            "new folder: make run DATA=…"
        )


def read_secret_key(folder: Folder) -> str:
    """Return the key that signs tokens and logins; it is generated once and stored with mode 0600.
    Raises FolderUnusable for a truncated one.
    """
    path = folder.secret_key
    if not path.exists():
        _write_once(path, secrets.token_urlsafe(48))
    key = _text(path)
    if len(key) < limits.SECRET_KEY_CHARACTERS_MIN:
        raise FolderUnusable(
            f"{path} holds no key of at least {limits.SECRET_KEY_CHARACTERS_MIN} characters: "
            "restore it from a backup. If there is none, remove the file: a new key is generated, "
            "logins and tokens end, and endpoints need new secrets."
        )
    return key


def _text(path: Path) -> str:
    """Return the text of a small file, with any bytes in it."""
    return path.read_text(errors="replace").strip()


def _write_once(path: Path, text: str) -> None:
    """Write a private file atomically."""
    unfinished = path.with_name(f"{path.name}.new")
    unfinished.unlink(missing_ok=True)
    fd = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(fd, "w") as file:
        file.write(f"{text}\n")
        file.flush()
        os.fsync(file.fileno())
    unfinished.rename(path)


def wipe_metrics(folder: Folder, owner: tuple[int, int]) -> Path:
    """Return the folder of the metrics, emptied: files of processes that have ended would count for
    ever. Other files stay. It is in the machine's memory if possible: with metrics on a full disk a
    process ends by SIGBUS, because its files are mapped.
    """
    metrics = (memory_folder(folder, owner) or folder.root) / "metrics"
    metrics.mkdir(mode=0o700, exist_ok=True)
    for path in metrics.iterdir():
        if COUNTERS.fullmatch(path.name) and not path.is_dir():
            path.unlink()
    return metrics


def socket_folder(folder: Folder, owner: tuple[int, int]) -> Path:
    """Return a private folder for the sockets: below the data folder, or a temporary one if that
    path is too long, or has a comma, with which PostgreSQL separates folders.
    """
    inside = folder.root / "run"
    if len(os.fsencode(inside / SOCKET)) <= SOCKET_PATH_BYTES_MAX and "," not in str(inside):
        inside.mkdir(mode=0o700, exist_ok=True)
        return inside
    outside = Path("/tmp") / _name_outside(folder)  # noqa: S108 - checked; $TMPDIR may be long
    if not _made_private(outside, owner):
        outside = Path(tempfile.mkdtemp(prefix="eventhub-", dir="/tmp"))
    return outside


def memory_folder(folder: Folder, owner: tuple[int, int]) -> Path | None:
    """Return a private folder in the machine's memory: for metrics, and for the log's mark, which a
    restored copy of the data folder cannot change. It stays when the hub stops. None if there is no
    such memory.
    """
    inside = MEMORY / _name_outside(folder)
    try:
        return inside if _made_private(inside, owner) else None
    except OSError:
        return None


def _name_outside(folder: Folder) -> str:
    """Return the name of folders elsewhere that belong to this data folder."""
    return f"eventhub-{hashlib.sha256(os.fsencode(folder.root)).hexdigest()[:12]}"


def _made_private(path: Path, owner: tuple[int, int]) -> bool:
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        return _is_private(path, owner)
    return True


def _is_private(path: Path, owner: tuple[int, int]) -> bool:
    found = path.lstat()
    return (
        stat.S_ISDIR(found.st_mode)
        and found.st_uid in (owner[0], os.geteuid())
        and stat.S_IMODE(found.st_mode) == 0o700
    )


def remove_socket_folder(folder: Folder, sockets: Path) -> None:
    if sockets.parent != folder.root:
        shutil.rmtree(sockets, ignore_errors=True)


def give(root: Path, owner: tuple[int, int]) -> None:
    """Change the owner (uid, gid) of `root` and everything in it, except files with several hard
    links.
    """
    paths = [root, *(Path(parent) / n for parent, ds, fs in os.walk(root) for n in (*ds, *fs))]
    for path in paths:
        found = path.lstat()
        several = not stat.S_ISDIR(found.st_mode) and found.st_nlink > 1
        if found.st_uid != owner[0] and not several:
            os.chown(path, *owner, follow_symlinks=False)
