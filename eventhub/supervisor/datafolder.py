"""The data folder: one hub at a time, its folders, its secret key, and a place for sockets with
short enough names. Plain module.
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
LOCK_TOLD_S = 1.0  # a wait that is worth a line
FORMAT = "1"  # of the folder; that of the tables is eventhub/postgresql/schema.py
MEMORY = Path("/dev/shm")  # noqa: S108 - a file system in memory; what is used of it is checked
MARKS = frozenset({"lock", "secret_key", "postgres"})  # two of them make a folder a hub's
FIRST_MARKS = frozenset({"lock", "secret_key", "postgres.new"})  # of a first start cut short
OTHER_NAMES = frozenset(
    {"archive", "ballast", "beat", "credentials.json", "format", "format.new", "metrics", "probe"}
    | {"run", "secret_key.new", "servers.log"}
)
NAMES = MARKS | FIRST_MARKS | OTHER_NAMES
NAMES_OF_OTHERS = frozenset({"lost+found"})  # in the root of a file system
COUNTERS = re.compile(r"(counter|gauge_[a-z]+|histogram|summary)_[0-9]+\.db")  # Prometheus's names


class FolderUnusable(Exception):
    """The data folder cannot be had; the message has its path and the reason."""


class FolderInUse(FolderUnusable):
    """Another hub runs on this data folder."""


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
    """What the system refuses below `root` becomes FolderUnusable."""
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
    """Make the folder, private, if it is not there. Nothing above it changes its permissions, and
    one that holds something else than a hub is left as it is. Raises FolderUnusable."""
    root = path.absolute()
    if str(root) != os.fsencode(root).decode(errors="replace"):
        raise FolderUnusable(f"cannot use {str(root)!r} as data folder: its path is not UTF-8")
    with usable(root):
        root.parent.mkdir(parents=True, exist_ok=True)
        root.mkdir(mode=0o700, exist_ok=True)
        root = root.resolve()
        names = {entry.name for entry in root.iterdir()} - NAMES_OF_OTHERS
    if names and not _is_hubs(names):
        raise FolderUnusable(
            f"{root} is not empty and not a hub's data folder (of lock, secret_key and postgres "
            "two are there in a hub's); nothing was touched. "
            "Choose a new or empty folder: make run DATA=…"
        )
    return Folder(root)


def _is_hubs(names: set[str]) -> bool:
    """Two marks, or, where a first start was cut short, one and nothing foreign. A folder of a
    name as common as `postgres` alone is no mark: it may be another server's data."""
    return len(names & MARKS) >= 2 or bool(names & FIRST_MARKS and names <= NAMES)


def acquire_lock(folder: Folder, say: Callable[[str], None] = lambda line: None) -> int:
    """Lock the folder for as long as the descriptor, or a copy in a guardian, is open. A hub that
    was killed is still stopping its parts: it is waited for, and `say` gets a line; one that runs
    raises FolderInUse, and what the system refuses FolderUnusable."""
    with usable(folder.root):
        fd = os.open(folder.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        _await_lock(fd, folder, say)
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
    return fd


def release_lock(fd: int) -> None:
    """The file names nobody then: the id of a process that has ended may come to be another's, and
    whoever reads it sends signals there."""
    with suppress(OSError):  # of a disk that fails
        os.ftruncate(fd, 0)
    os.close(fd)


def _await_lock(fd: int, folder: Folder, say: Callable[[str], None]) -> None:
    began = time.monotonic()
    told = False
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
            if waited_s >= LOCK_TOLD_S and not told:
                told = True
                say(f"waiting for what is left of the hub that was process {holder or 'unknown'}")
            time.sleep(LOCK_POLL_S)


def _holds(pid: str, fd: int) -> bool:
    """Whether that process has the lock's file open. The id of a hub that was killed may belong to
    anything by now, but only a hub has this file open, and its guardians have other ids."""
    lock = os.fstat(fd)
    if pid == str(os.getpid()):
        return False  # it is ours by now
    try:
        process = Path(f"/proc/{int(pid)}")
        if (process / "stat").read_text().rpartition(")")[2].split()[0] in "ZX":
            return False
        opened = list((process / "fd").iterdir())
    except PermissionError:
        return True  # somebody else's, so we cannot know: a hub of another user
    except (OSError, ValueError):
        return False
    return any(_is_file(path, lock) for path in opened)


def _is_file(path: Path, file: os.stat_result) -> bool:
    try:
        return os.path.samestat(path.stat(), file)
    except OSError:
        return False  # closed meanwhile


def check_format(folder: Folder) -> None:
    """A new folder gets this hub's format number; one of another, or of another PostgreSQL, or with
    what is left of a database, raises FolderUnusable, with nothing touched.
    """
    version = folder.postgres / "PG_VERSION"
    with usable(folder.root):
        is_made = version.exists()
        made_by = _text(version) if is_made else POSTGRES_MAJOR
        remains = not is_made and folder.postgres.exists() and any(folder.postgres.iterdir())
        if not folder.format.exists() and not folder.postgres.exists():
            _write_once(folder.format, FORMAT)
        found = _text(folder.format) if folder.format.exists() else "none"
    if remains or not made_by:
        raise FolderUnusable(
            f"{folder.postgres} is not a whole database: PG_VERSION is missing or empty there; "
            "nothing was touched. Put the folder back from a backup (docs/backup.md), or choose a "
            "new data folder: make run DATA=…"
        )
    if made_by != POSTGRES_MAJOR:
        raise FolderUnusable(
            f"{folder.postgres} was made by PostgreSQL {made_by[:20]}, and this hub runs "
            f"PostgreSQL {POSTGRES_MAJOR}; nothing was touched. Run the version that made it, or "
            "choose a new folder: make run DATA=…"
        )
    if found != FORMAT:
        raise FolderUnusable(
            f"{folder.root} is a data folder of format {found[:20]}, and this hub reads and writes "
            f"format {FORMAT}; nothing was touched. Run the version that made it, or choose a new "
            "folder: make run DATA=…"
        )


def read_secret_key(folder: Folder) -> str:
    """The key that signs tokens and logins: made once, kept 0600. One that was cut short raises
    FolderUnusable."""
    path = folder.secret_key
    if not path.exists():
        _write_once(path, secrets.token_urlsafe(48))
    key = _text(path)
    if len(key) < limits.SECRET_KEY_CHARACTERS_MIN:
        raise FolderUnusable(
            f"{path} holds no key of at least {limits.SECRET_KEY_CHARACTERS_MIN} characters: "
            "put it back from a backup. If there is none, remove the file: another key is made, "
            "logins and tokens end, and endpoints need new secrets."
        )
    return key


def _text(path: Path) -> str:
    """What a small file holds, whatever bytes are in it."""
    return path.read_text(errors="replace").strip()


def _write_once(path: Path, text: str) -> None:
    """A private file that is there whole or not at all."""
    unfinished = path.with_name(f"{path.name}.new")
    unfinished.unlink(missing_ok=True)
    fd = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(fd, "w") as file:
        file.write(f"{text}\n")
        file.flush()
        os.fsync(file.fileno())
    unfinished.rename(path)


def wipe_metrics(folder: Folder, owner: tuple[int, int]) -> Path:
    """The folder of the counters, empty: those of processes that have ended would count for ever.
    What is no counter stays. It is in the machine's memory where that can be had: a process that
    counts on a disk that is full ends by SIGBUS, as its files are mapped."""
    place = (memory_folder(folder, owner) or folder.root) / "metrics"
    place.mkdir(mode=0o700, exist_ok=True)
    for path in place.iterdir():
        if COUNTERS.fullmatch(path.name) and not path.is_dir():
            path.unlink()
    return place


def socket_folder(folder: Folder, owner: tuple[int, int]) -> Path:
    """A private folder for the sockets: below the data folder, or a temporary one where that path
    is too long, or has a comma, by which PostgreSQL separates folders."""
    inside = folder.root / "run"
    if len(os.fsencode(inside / SOCKET)) <= SOCKET_PATH_BYTES_MAX and "," not in str(inside):
        inside.mkdir(mode=0o700, exist_ok=True)
        return inside
    outside = Path("/tmp") / _name_outside(folder)  # noqa: S108 - checked; $TMPDIR may be long
    if not _made_private(outside, owner):
        outside = Path(tempfile.mkdtemp(prefix="eventhub-", dir="/tmp"))
    return outside


def memory_folder(folder: Folder, owner: tuple[int, int]) -> Path | None:
    """A private folder in the machine's memory: for counters, and for the log's mark, which no copy
    of the data folder that is put back can change. It stays when the hub stops. None if there is
    none to be had."""
    inside = MEMORY / _name_outside(folder)
    try:
        return inside if _made_private(inside, owner) else None
    except OSError:
        return None


def _name_outside(folder: Folder) -> str:
    """Of what belongs to the folder and is elsewhere."""
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
    """Make `root` and all in it belong to `owner` (uid, gid). Files with several names elsewhere
    are left alone."""
    paths = [root, *(Path(parent) / n for parent, ds, fs in os.walk(root) for n in (*ds, *fs))]
    for path in paths:
        found = path.lstat()
        several = not stat.S_ISDIR(found.st_mode) and found.st_nlink > 1
        if found.st_uid != owner[0] and not several:
            os.chown(path, *owner, follow_symlinks=False)
