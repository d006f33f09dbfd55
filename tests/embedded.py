"""A pytest plugin (`-p tests.embedded`): throw-away PostgreSQL and Redis for the whole run, before
settings are read.

They run as those of `manage.py up` do and end with pytest, also when it is killed; only that
nothing is forced to the disk, which no kill of a process needs. DATABASE_URL and REDIS_URL, where
set, are respected.
"""

import fcntl
import importlib
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

from eventhub.base.garbage import collect_rarely
from eventhub.supervisor.embedded import embedded
from eventhub.supervisor.postgres import DATABASE
from tests import java, prepared
from tests.databases import MIGRATED, drop_template
from tests.forked import end_server
from tests.prepared import PREFIX

# The files of the servers are in memory where there is this much for each test process: a database
# is created and dropped for most tests, which takes four times as long on a disk.
MEMORY, DISK = Path("/dev/shm"), Path("/tmp")
MEMORY_BYTES = 2 << 30
# files that share what is expensive to start: Chromium with the console, a session of Spark, the
# hub for bad inputs
TOGETHER = (
    "tests/browser/",
    "tests/spark/",
    "tests/acceptance/eventhub/api/test_bad_inputs",
)
# files whose tests compute nearly all the time; those of the others wait for most of it
COMPUTING = (
    "tests/browser/",
    "tests/integration/test_benchmarks_smoke.py",
    "tests/simulation/test_upgrade.py",
    "tests/spark/",
    "tests/tidy/",
    "tests/unit/",
)
PER_COMPUTING = 5  # test processes, of which one prefers such files: it keeps a core busy


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Iterator[None]:
    """Set the environment before pytest-django, which imports the settings in the same hook."""
    collect_rarely()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a run in the background: what tests
        signal.signal(signal.SIGINT, signal.default_int_handler)  # start is to hear Ctrl-C
    os.environ.setdefault("JAVA_TOOL_OPTIONS", java.options())
    os.environ["TZ"] = "UTC"  # as Django sets it: the fork server may start before
    stack = ExitStack()
    early_config.add_cleanup(stack.close)
    stack.callback(prepared.forget)
    prepared.choose_place()
    if not _only_hands_out(early_config):
        os.environ.update(stack.enter_context(servers()))
        stack.callback(end_server)
        stack.callback(drop_template)
    return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Import a share of the test modules before all are collected. Processes that collect all of
    them in the same order at the same time would each compile all of them.
    """
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    count = _processes()
    root = session.config.rootpath
    chosen = [session.config.invocation_params.dir / each for each in session.config.args]
    files = sorted(file for folder in chosen for file in folder.rglob("test_*.py"))
    for file in files[number::count] if count > 1 else ():
        with suppress(Exception):  # the collection reports it
            importlib.import_module(".".join(file.relative_to(root).with_suffix("").parts))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling:
    return _ByFile(config, log)


class _ByFile(LoadFileScheduling):  # type: ignore[misc]
    """File after file; the files of each group of `TOGETHER` go to one process, those of
    `COMPUTING` to some processes as long as there are both kinds.
    """

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid.partition("::")[0])

    def _assign_work_unit(self, node: WorkerController) -> None:
        computes = int(node.gateway.id.removeprefix("gw")) % PER_COMPUTING == 0
        files = (file for file in self.workqueue if file.startswith(COMPUTING) == computes)
        if (file := next(files, None)) is not None:
            self.workqueue.move_to_end(file, last=False)
        super()._assign_work_unit(node)


def group_of(file: str) -> str:
    """Return the name of the files that one process runs: a file, or a group of `TOGETHER`."""
    return next((start for start in TOGETHER if file.startswith(start)), file)


def _only_hands_out(config: pytest.Config) -> bool:
    """Return whether other processes run the tests, each with servers of its own."""
    options = config.known_args_namespace
    return "PYTEST_XDIST_WORKER" not in os.environ and bool(getattr(options, "numprocesses", None))


def _processes() -> int:
    """Return the number of processes that run tests."""
    return int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))


@contextmanager
def servers() -> Iterator[dict[str, str]]:
    _sweep()
    data = Path(tempfile.mkdtemp(prefix=PREFIX, dir=_place()))
    ours = "DATABASE_URL" not in os.environ
    is_migrated = ours and prepared.fill(data)
    try:
        with embedded(data) as env:
            if ours:
                _forget_the_disk(env["DATABASE_URL"])
            if is_migrated:
                _set_aside(env["DATABASE_URL"])
            yield env
    finally:
        shutil.rmtree(data, ignore_errors=True)


def _place() -> Path:
    needed = _processes() * MEMORY_BYTES
    room = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= needed
    return MEMORY if room else DISK


def _forget_the_disk(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for name in ("fsync", "full_page_writes"):
            connection.execute(f"ALTER SYSTEM SET {name} = off")
        connection.execute("SELECT pg_reload_conf()")


def _set_aside(url: str) -> None:
    """Keep the migrated database as a template, and create an empty one under its name."""
    name = sql.Identifier(DATABASE)
    with psycopg.connect(make_conninfo(url, dbname="postgres"), autocommit=True) as connection:
        kept = sql.Identifier(MIGRATED)
        connection.execute(sql.SQL("ALTER DATABASE {} RENAME TO {}").format(name, kept))
        connection.execute(sql.SQL("CREATE DATABASE {}").format(name))


def _sweep() -> None:
    """Remove what runs left that were killed: their lock is free."""
    for lock in (*MEMORY.glob(f"{PREFIX}*/lock"), *DISK.glob(f"{PREFIX}*/lock")):
        try:
            with lock.open() as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(lock.parent)
        except OSError:
            continue
