"""The user that the hub's processes run as. PostgreSQL refuses root, so a hub started as root steps
down to an unprivileged user. Plain module.

Whether a user can reach the programs and the data is not guessed from permissions: a probe runs as
that user.
"""

import os
import pwd
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from eventhub.base.guarded_process import Command, GuardedProcess, Identity, current_identity
from eventhub.supervisor import programs
from eventhub.supervisor.datafolder import Folder, give

PROBE_TIMEOUT_S = 120.0  # a slow machine must not exclude a user
USERS = ("eventhub", "nobody")
# The packages are read, not run: to import them takes ten times as long.
PROBE = """
import os, sys
from importlib.util import find_spec
data, *programs = sys.argv[1:]
assert os.geteuid() != 0
for name in ("django", "psycopg", "redis", "eventhub.base.limits"):
    assert find_spec(name).loader.get_code(name), name
for program in programs:
    assert os.access(program, os.X_OK), program
path = os.path.join(data, "probe")
with open(path, "w") as file:
    file.write("written")
os.unlink(path)
"""


class NoIdentity(Exception):
    """As root, there is no user to run the processes as; the message says what to do."""


def choose(folder: Folder, home: Path) -> Identity:
    """Choose the identity of the processes. As root, it is the first that works of the folder's
    owner, the user eventhub, nobody, and a user namespace; the folder and its content then belong
    to it. `home` is the folder of manage.py. Raises NoIdentity.
    """
    if os.geteuid() != 0:
        return current_identity()
    before = folder.root.stat()
    for identity in (*_users(folder), *_namespace()):
        give(folder.root, identity.owner)
        if _works(identity, folder, home):
            return identity
    give(folder.root, (before.st_uid, before.st_gid))
    raise NoIdentity(_advice(folder, home))


def _users(folder: Folder) -> Iterator[Identity]:
    owner = folder.root.stat().st_uid
    found: list[pwd.struct_passwd] = []
    for key in (owner, *USERS):
        try:
            entry = pwd.getpwuid(key) if isinstance(key, int) else pwd.getpwnam(key)
        except KeyError:
            continue
        if entry.pw_uid != 0 and entry not in found:
            found.append(entry)
    for entry in found:
        yield _as_user(entry)


def _as_user(entry: pwd.struct_passwd) -> Identity:
    uid, gid = entry.pw_uid, entry.pw_gid
    groups = tuple(os.getgrouplist(entry.pw_name, gid))
    note = f"started as root: processes run as user {entry.pw_name}, the data folder's owner now"
    return Identity("user", uid, gid, groups, (uid, gid), note)


def _namespace() -> Iterator[Identity]:
    """Yield the identity that is root outside of a user namespace and an ordinary user inside.
    initdb looks the user up, so it is one that has a name.
    """
    for entry in sorted(pwd.getpwall(), key=lambda entry: entry.pw_uid):
        if entry.pw_uid != 0:
            note = (
                "started as root, no unprivileged user can reach the programs and the data: "
                f"processes run in user namespaces (as {entry.pw_name} inside, with root's files)"
            )
            yield Identity("namespace", entry.pw_uid, entry.pw_gid, (), (0, 0), note)
            return


def _works(identity: Identity, folder: Folder, home: Path) -> bool:
    argv = (
        sys.executable,
        "-c",
        PROBE,
        str(folder.root),
        str(programs.postgres("initdb")),
        str(programs.postgres("postgres")),
        str(programs.redis_server()),
    )
    env = {**os.environ, "PYTHONPATH": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
    probe = GuardedProcess(Command("probe", argv, env), identity, output=subprocess.DEVNULL)
    try:
        return probe.wait(PROBE_TIMEOUT_S) == 0
    except subprocess.TimeoutExpired:
        probe.kill()
        probe.wait()
        return False


def _advice(folder: Folder, home: Path) -> str:
    """Return a command that works, found by trying, or other advice if no user can reach the
    programs.
    """
    for path in ("/var/lib/eventhub", "/srv/eventhub", "/var/tmp/eventhub"):  # noqa: S108
        if Path(path) != folder.root and _would_work(Path(path), home):
            return (
                f"started as root, but no unprivileged user can reach {folder.root}, and this "
                f"system refuses user namespaces. Use: make run DATA={path}"
            )
    return (
        f"started as root, but no unprivileged user can run {sys.executable}, and this system "
        f"refuses user namespaces. As an ordinary user who can: make run DATA={folder.root}"
    )


def _would_work(path: Path, home: Path) -> bool:
    if path.exists() or not path.parent.is_dir():
        return False
    path.mkdir(mode=0o700)
    try:
        for identity in _users(Folder(path)):
            give(path, identity.owner)
            if _works(identity, Folder(path), home):
                return True
        return False
    finally:
        path.rmdir()
