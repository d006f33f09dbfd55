"""The hub on one machine: its processes, their order and their environment. `run` is
`manage.py up`. Plain module.
"""

import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from eventhub.base import limits
from eventhub.base.env import move_file_into_environment, read_env
from eventhub.base.forking import ForkServer
from eventhub.base.guarded_process import Command, Identity
from eventhub.supervisor import banner, datafolder, demo_receivers, leftovers, port, users
from eventhub.supervisor.ballast import Ballast
from eventhub.supervisor.datafolder import Folder, FolderInUse, FolderUnusable
from eventhub.supervisor.output import Output, have_standard_streams
from eventhub.supervisor.port import PortBusy
from eventhub.supervisor.postgres import Postgres
from eventhub.supervisor.redis import Redis
from eventhub.supervisor.supervisor import REPLACE, HubFailed, ProcessSpec, RetryLimits, Supervisor
from eventhub.supervisor.users import NoIdentity

HOME = Path(__file__).resolve().parents[2]  # the folder of manage.py
CELERY = ("-m", "celery", "-q", "-A", "eventhub")
READY_PROBE_TIMEOUT_S = 2.0  # of a busy machine; the supervisor waits meanwhile


class UpOptions(NamedTuple):
    """The options of `manage.py up`."""

    data: Path
    host: str = "127.0.0.1"
    port: int = 8000
    web: int = 2
    forwarders: int = 2
    workers: int = 2
    connectors: int = 1
    demo: bool = False
    restarts_max: int | None = None  # of one process in a row; None: without end
    start_s_max: float | None = None  # until each process is ready; None: without end
    manage: Path = HOME / "manage.py"  # runs boot, web, forward, connect and demo
    preload: str = (
        "eventhub.preload"  # the module that they are forked with; "": each loads its own
    )


class Servers(NamedTuple):
    """The embedded servers; None where a URL in the environment replaces one."""

    postgres: Postgres | None
    redis: Redis | None

    @classmethod
    def choose(cls, folder: Folder, sockets: Path) -> "Servers":
        """Return the servers that no URL replaces. Without DATABASE_URL it removes the variables of
        libpq: PGPORT, PGSERVICE and the like describe other servers, and would change the
        connections to the embedded one.
        """
        given = read_env()
        if not given.database_url:
            for name in [name for name in os.environ if name.startswith("PG")]:
                del os.environ[name]
        return cls(
            None if given.database_url else Postgres(folder.postgres, sockets),
            None if given.redis_url else Redis(sockets),
        )

    def environment(self) -> dict[str, str]:
        found = {}
        if self.postgres is not None:
            found["DATABASE_URL"] = found["DATABASE_DIRECT_URL"] = self.postgres.url()
        if self.redis is not None:
            found["REDIS_URL"] = self.redis.url()
        return found

    def specs(self, env: dict[str, str], *, sync: bool = True) -> Iterator[ProcessSpec]:
        """Yield the processes of stages 0 and 1. Without `sync` a new cluster is not flushed to the
        disk, for throw-away data.
        """
        if self.postgres is not None:
            if not self.postgres.exists():
                initdb = self.postgres.initdb(env, sync=sync)
                yield ProcessSpec(initdb, stage=0, once=True, before=self.postgres.clear_unfinished)
            yield ProcessSpec(
                self.postgres.server(env),
                stage=1,
                is_ready=self.postgres.is_ready,
                before=self.postgres.prepare,
            )
        if self.redis is not None:
            yield ProcessSpec(self.redis.server(env), stage=1, is_ready=self.redis.is_ready)


class LockedFolder(NamedTuple):
    """A locked data folder, ready for processes to run in."""

    folder: Folder
    lock: int
    identity: Identity
    sockets: Path

    @classmethod
    def take(cls, data: Path, say: Callable[[str], None] = lambda line: None) -> "LockedFolder":
        """Lock the folder; `say` gets a line when it has to wait. Raises FolderUnusable,
        NoIdentity.
        """
        folder = datafolder.open_folder(data)
        lock = datafolder.acquire_lock(folder, say)
        try:
            return cls._take(folder, lock)
        except BaseException:
            datafolder.release_lock(lock)
            raise

    @classmethod
    def _take(cls, folder: Folder, lock: int) -> "LockedFolder":
        if (other := leftovers.served_by(folder.postgres)) is not None:
            raise FolderInUse(
                f"{folder.root} is in use by another hub (process {other}), whose lock file was "
                "removed; stop it first"
            )
        datafolder.check_format(folder)
        with datafolder.usable(folder.root):
            identity = users.choose(folder, HOME)
            sockets = datafolder.socket_folder(folder, identity.owner)
        return cls(folder, lock, identity, sockets)

    def environment(self, servers: Servers) -> dict[str, str]:
        """Return the environment of every process. Afterwards the folder and its new files belong
        to the processes' identity. Raises FolderUnusable.
        """
        env = dict(os.environ)
        env.update(servers.environment())
        env["EVENTHUB_DATA"] = str(self.folder.root)
        env.setdefault("EVENTHUB_ARCHIVE_URL", str(self.folder.archive))
        if servers.postgres is not None:
            env.setdefault("EVENTHUB_STORE_DIR", str(self.folder.root))
        env["PYTHONUNBUFFERED"] = "1"
        with datafolder.usable(self.folder.root):
            if not env.get("EVENTHUB_SECRET_KEY"):
                env["EVENTHUB_SECRET_KEY"] = datafolder.read_secret_key(self.folder)
            counters = datafolder.wipe_metrics(self.folder, self.identity.owner)
            env["PROMETHEUS_MULTIPROC_DIR"] = str(counters)
            if os.geteuid() == 0:
                datafolder.give(counters.parent, self.identity.owner)
                datafolder.give(self.folder.root, self.identity.owner)
                datafolder.give(self.sockets, self.identity.owner)
        return env

    def mark(self, env: dict[str, str]) -> None:
        """Set the URL of the log's mark to the machine's memory, for an embedded database."""
        folder = datafolder.memory_folder(self.folder, self.identity.owner)
        if folder is None:
            return  # then it is in Redis, and lost when Redis ends
        env.setdefault("EVENTHUB_MARK_URL", f"file://{folder}")
        if os.geteuid() == 0:
            datafolder.give(folder, self.identity.owner)

    def leave(self) -> None:
        datafolder.remove_socket_folder(self.folder, self.sockets)
        datafolder.release_lock(self.lock)


def run(options: UpOptions) -> int:
    """Run the hub until a signal, and return the exit status."""
    signal.signal(REPLACE, signal.SIG_IGN)  # the lock file names this process before others start
    have_standard_streams()
    move_file_into_environment()
    output = Output()
    try:
        with ExitStack() as stack:
            hub = stack.enter_context(_listen(options, output))
            sink = stack.enter_context(port.listen("127.0.0.1", 0)) if options.demo else None
            locked = LockedFolder.take(options.data, output.say)
            stack.callback(locked.leave)
            return _run(options, output, locked, (hub, sink))
    except (PortBusy, FolderUnusable, NoIdentity, HubFailed) as error:
        output.say(str(error))
        return 1
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # so that the log says why the hub ended
        output.say(f"the hub ends because of an unexpected error: {error!r}")
        raise


def _listen(options: UpOptions, output: Output) -> socket.socket:
    """Listen on the hub's port. If web processes of a killed hub hold it, wait until they have
    ended. Raises PortBusy, FolderUnusable.
    """
    try:
        return port.listen(options.host, options.port)
    except PortBusy:
        if not Folder(options.data).lock.exists():
            raise
    datafolder.release_lock(
        datafolder.acquire_lock(datafolder.open_folder(options.data), output.say)
    )
    return port.listen(options.host, options.port)


def _run(
    options: UpOptions,
    output: Output,
    locked: LockedFolder,
    sockets: tuple[socket.socket, socket.socket | None],
) -> int:
    """Run the processes. `sockets` outlive the processes that serve them: the hub's, and that of
    the demo's receiver of callbacks.
    """
    hub, sink = sockets
    if locked.identity.note:
        output.say(locked.identity.note)
    servers = Servers.choose(locked.folder, locked.sockets)
    env = locked.environment(servers)
    if servers.postgres is not None:
        locked.mark(env)
    loopback = False
    if sink is not None:
        given_allow = env.get("EVENTHUB_CALLBACK_ALLOW", "")
        loopback = demo_receivers.allows_loopback(hub, embedded=servers.postgres is not None)
        env["EVENTHUB_CALLBACK_ALLOW"] = demo_receivers.allowed(
            given_allow, sink, loopback=loopback
        )
    ballast = Ballast(locked.folder.root, output.say) if servers.postgres else None
    specs = [
        *_with_ballast(servers.specs(env), ballast),
        *_own_specs(options, env, hub, locked.sockets),
        *_celery_specs(options, env, locked.folder),
    ]
    if sink is not None:
        specs.append(_demo(options, env, hub, sink, locked.folder))
    supervisor = Supervisor(
        specs,
        locked.identity,
        output,
        keep_fds=(locked.lock,),
        retry_limits=RetryLimits(
            options.restarts_max,
            options.start_s_max,
            lambda: ballast.external_cause() if ballast else None,
        ),
    )
    if options.preload:
        supervisor.fork_from(partial(_fork_server, options.preload, env, locked.identity))
    url = port.local_url(hub)
    given = {name: value for name, value in env.items() if os.environ.get(name) != value}
    ready = banner.text(url, locked.folder, given, demo=options.demo, loopback=loopback)
    with _ballast_maintained(ballast):
        supervisor.run(lambda: output.show(ready))
    return 0


def _fork_server(module: str, env: dict[str, str], identity: Identity) -> ForkServer:
    return ForkServer(module, env, identity._asdict(), subprocess.PIPE)


def _with_ballast(specs: Iterable[ProcessSpec], ballast: Ballast | None) -> Iterator[ProcessSpec]:
    """Release the ballast, if the disk is full, before each preparation of a start."""
    for spec in specs:
        if ballast is None or spec.before is None:
            yield spec
        else:
            yield spec._replace(before=partial(_in_order, ballast.release_if_full, spec.before))


def _in_order(*steps: Callable[[], None]) -> None:
    for step in steps:
        step()


@contextmanager
def _ballast_maintained(ballast: Ballast | None) -> Iterator[None]:
    """Keep the ballast on the disk, while space is free, until the block is left."""
    stop = threading.Event()
    thread: threading.Thread | None = None
    if ballast is not None:
        with suppress(OSError):  # the processes report a failing disk in more detail
            ballast.allocate_if_free()
        thread = threading.Thread(target=ballast.maintain, args=(stop,), daemon=True)
        thread.start()
    try:
        yield
    finally:
        stop.set()
        if thread is not None:
            thread.join()


def _own_specs(
    options: UpOptions, env: dict[str, str], listening: socket.socket, folder: Path
) -> Iterator[ProcessSpec]:
    """Yield the processes that run the hub's own commands."""
    url = port.local_url(listening)
    boot = Command("boot", _manage(options, "boot", "--migrate"), env)
    yield ProcessSpec(boot, stage=2, once=True)
    for number in range(1, options.web + 1):
        name = f"web-{number}"
        ready = folder / f"{name}.ready"  # they share a port: any of them may answer
        argv = _manage(options, "web", "--fd", str(listening.fileno()), "--ready", str(ready))
        web = Command(
            name, argv, env, grace_s=limits.GRACEFUL_S_MAX + 1.0, fds=(listening.fileno(),)
        )
        yield ProcessSpec(
            web,
            stage=3,
            is_ready=partial(_serves, ready, f"{url}/readyz"),
            before=partial(ready.unlink, missing_ok=True),
            replaceable=True,
        )
    for number in range(1, options.forwarders + 1):
        forward = Command(f"forward-{number}", _manage(options, "forward"), env)
        yield ProcessSpec(forward, stage=3, replaceable=True)
    for number in range(1, options.connectors + 1):
        connect = Command(f"connect-{number}", _manage(options, "connect"), env)
        yield ProcessSpec(connect, stage=3, replaceable=True)


def _celery_specs(options: UpOptions, env: dict[str, str], folder: Folder) -> Iterator[ProcessSpec]:
    """Yield the workers, each of all queues (eventhub/base/broker.py), and beat."""
    for number in range(1, options.workers + 1):
        name = f"worker-{number}"
        argv = (sys.executable, *celery_worker(f"{name}@%h"))
        worker = Command(name, argv, env, grace_s=limits.GRACEFUL_S_MAX + 1.0)
        yield ProcessSpec(worker, stage=3, replaceable=True)
    if not options.workers:
        return
    timetable = ("-s", str(folder.root / "beat"), "--pidfile", "")
    argv = (sys.executable, *CELERY, "beat", *timetable)
    yield ProcessSpec(Command("beat", argv, env), stage=3, replaceable=True)


def celery_worker(name: str) -> tuple[str, ...]:
    """Return Python's arguments that run a worker of that name (`worker-1@%h`)."""
    quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat")
    return (*CELERY, "worker", "-n", name, *quiet)


def _demo(
    options: UpOptions, env: dict[str, str], hub: socket.socket, sink: socket.socket, folder: Folder
) -> ProcessSpec:
    words = ("--url", port.local_url(hub), "--sink-fd", str(sink.fileno()))
    command = Command(
        "demo", _manage(options, "demo", *words), env, grace_s=1.5, fds=(sink.fileno(),)
    )
    return ProcessSpec(command, stage=4, is_ready=folder.credentials.exists)


def _manage(options: UpOptions, *words: str) -> tuple[str, ...]:
    return (sys.executable, str(options.manage), *words)


def _serves(ready: Path, url: str) -> bool:
    return ready.exists() and _answers(url)


def _answers(url: str) -> bool:
    """Return whether GET returns 200; without a proxy, because it is this machine."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=READY_PROBE_TIMEOUT_S) as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        return False
