"""The hub on one machine: which parts there are, in which order, with which environment. `run` is
`manage.py up`. Plain module.
"""

import os
import signal
import socket
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
from eventhub.base.guarded import Command, Identity
from eventhub.supervisor import banner, datafolder, leftovers, port, users
from eventhub.supervisor.ballast import Ballast
from eventhub.supervisor.datafolder import Folder, FolderInUse, FolderUnusable
from eventhub.supervisor.output import Output, have_standard_streams
from eventhub.supervisor.port import PortBusy
from eventhub.supervisor.postgres import Postgres
from eventhub.supervisor.redis import Redis
from eventhub.supervisor.supervisor import RENEW, HubFailed, Part, Patience, Supervisor
from eventhub.supervisor.users import NoIdentity

HOME = Path(__file__).resolve().parents[2]  # the folder of manage.py
CELERY = ("-m", "celery", "-q", "-A", "eventhub")
READY_PROBE_TIMEOUT_S = 2.0  # of a busy machine; the supervisor waits meanwhile


class Options(NamedTuple):
    """What `manage.py up` takes."""

    data: Path
    host: str = "127.0.0.1"
    port: int = 8000
    web: int = 2
    forwarders: int = 2
    workers: int = 2
    demo: bool = False
    restarts_max: int | None = None  # of one part in a row; None: no end
    start_s_max: float | None = None  # until all parts are ready; None: no end
    manage: Path = HOME / "manage.py"  # runs boot, web, forward and demo


class Servers(NamedTuple):
    """The embedded servers; None where a URL in the environment replaces one."""

    postgres: Postgres | None
    redis: Redis | None

    @classmethod
    def choose(cls, folder: Folder, sockets: Path) -> "Servers":
        """Without DATABASE_URL no variable of libpq counts: PGPORT, PGSERVICE and the like are for
        other servers, and would be taken for more about the embedded one."""
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

    def parts(self, env: dict[str, str], *, sync: bool = True) -> Iterator[Part]:
        """Stages 0 and 1. `sync` off: a new cluster is not flushed to disk, for throw-away data."""
        if self.postgres is not None:
            if not self.postgres.is_made():
                initdb = self.postgres.initdb(env, sync=sync)
                yield Part(initdb, stage=0, once=True, before=self.postgres.clear_unfinished)
            yield Part(
                self.postgres.server(env),
                stage=1,
                is_ready=self.postgres.is_ready,
                before=self.postgres.prepare,
            )
        if self.redis is not None:
            yield Part(self.redis.server(env), stage=1, is_ready=self.redis.is_ready)


class Place(NamedTuple):
    """A locked data folder, ready for parts to run in."""

    folder: Folder
    lock: int
    identity: Identity
    sockets: Path

    @classmethod
    def take(cls, data: Path, say: Callable[[str], None] = lambda line: None) -> "Place":
        """`say` gets a line when something is waited for. Raises FolderUnusable, NoIdentity."""
        folder = datafolder.open_folder(data)
        lock = datafolder.acquire_lock(folder, say)
        try:
            return cls._take(folder, lock)
        except BaseException:
            datafolder.release_lock(lock)
            raise

    @classmethod
    def _take(cls, folder: Folder, lock: int) -> "Place":
        if (other := leftovers.served_by(folder.postgres)) is not None:
            raise FolderInUse(
                f"{folder.root} is in use by another hub (process {other}), whose lock file was "
                "removed; stop it first"
            )
        datafolder.check_format(folder)
        with datafolder.usable(folder.root):
            who = users.choose(folder, HOME)
            sockets = datafolder.socket_folder(folder, who.owner)
        return cls(folder, lock, who, sockets)

    def environment(self, servers: Servers) -> dict[str, str]:
        """What every part gets. The folder and its new files belong to the parts' identity
        afterwards. Raises FolderUnusable."""
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
        """Keep the log's mark in the machine's memory, beside an embedded database."""
        folder = datafolder.memory_folder(self.folder, self.identity.owner)
        if folder is None:
            return  # it is in Redis then, whose end takes it along
        env.setdefault("EVENTHUB_MARK_URL", f"file://{folder}")
        if os.geteuid() == 0:
            datafolder.give(folder, self.identity.owner)

    def leave(self) -> None:
        datafolder.remove_socket_folder(self.folder, self.sockets)
        datafolder.release_lock(self.lock)


def run(options: Options) -> int:
    """Run the hub until a signal; returns the exit status."""
    signal.signal(RENEW, signal.SIG_IGN)  # the lock file names this process before there are parts
    have_standard_streams()
    move_file_into_environment()
    output = Output()
    try:
        with ExitStack() as stack:
            hub = stack.enter_context(_listen(options, output))
            sink = stack.enter_context(port.listen("127.0.0.1", 0)) if options.demo else None
            place = Place.take(options.data, output.say)
            stack.callback(place.leave)
            return _run(options, output, place, (hub, sink))
    except (PortBusy, FolderUnusable, NoIdentity, HubFailed) as error:
        output.say(str(error))
        return 1
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # whatever it is, the log says why the hub ended
        output.say(f"the hub ends, because of what it did not foresee: {error!r}")
        raise


def _listen(options: Options, output: Output) -> socket.socket:
    """The hub's port. Web processes of a hub that was killed hold it until they have ended. Raises
    PortBusy, FolderUnusable."""
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
    options: Options,
    output: Output,
    place: Place,
    sockets: tuple[socket.socket, socket.socket | None],
) -> int:
    """`sockets` outlive the processes that serve them: the hub's, and the demo's receiver of
    callbacks.
    """
    hub, sink = sockets
    if place.identity.note:
        output.say(place.identity.note)
    servers = Servers.choose(place.folder, place.sockets)
    env = place.environment(servers)
    if servers.postgres is not None:
        place.mark(env)
    if sink is not None:
        env["EVENTHUB_CALLBACK_ALLOW"] = _allowing(env, sink)
    ballast = Ballast(place.folder.root, output.say) if servers.postgres else None
    parts = [
        *_with_ballast(servers.parts(env), ballast),
        *_own_parts(options, env, hub, place.sockets),
        *_celery_parts(options, env, place.folder),
    ]
    if sink is not None:
        parts.append(_demo(options, env, hub, sink, place.folder))
    supervisor = Supervisor(
        parts,
        place.identity,
        output,
        keep_fds=(place.lock,),
        patience=Patience(
            options.restarts_max, options.start_s_max, lambda: ballast.excuse() if ballast else None
        ),
    )
    url = port.local_url(hub)
    given = {name: value for name, value in env.items() if os.environ.get(name) != value}
    ready = banner.text(url, place.folder, given, demo=options.demo)
    with _kept(ballast):
        supervisor.run(lambda: output.show(ready))
    return 0


def _with_ballast(parts: Iterable[Part], ballast: Ballast | None) -> Iterator[Part]:
    """Whatever is prepared before a start on this disk, the ballast goes first if need be."""
    for part in parts:
        if ballast is None or part.before is None:
            yield part
        else:
            yield part._replace(before=partial(_in_turn, ballast.throw_off_if_short, part.before))


def _in_turn(*steps: Callable[[], None]) -> None:
    for step in steps:
        step()


@contextmanager
def _kept(ballast: Ballast | None) -> Iterator[None]:
    """The ballast is on the disk, as far as there is room, until the block is left."""
    stop = threading.Event()
    keeper: threading.Thread | None = None
    if ballast is not None:
        with suppress(OSError):  # of a disk that fails the parts have more to say
            ballast.take_if_there_is_room()
        keeper = threading.Thread(target=ballast.keep, args=(stop,), daemon=True)
        keeper.start()
    try:
        yield
    finally:
        stop.set()
        if keeper is not None:
            keeper.join()


def _own_parts(
    options: Options, env: dict[str, str], listening: socket.socket, folder: Path
) -> Iterator[Part]:
    """What runs from this repository with the hub's own commands."""
    url = port.local_url(listening)
    boot = Command("boot", _manage(options, "boot", "--migrate"), env)
    yield Part(boot, stage=2, once=True)
    for number in range(1, options.web + 1):
        name = f"web-{number}"
        ready = folder / f"{name}.ready"  # they share a port: any of them may answer
        argv = _manage(options, "web", "--fd", str(listening.fileno()), "--ready", str(ready))
        web = Command(
            name, argv, env, grace_s=limits.GRACEFUL_S_MAX + 1.0, fds=(listening.fileno(),)
        )
        yield Part(
            web,
            stage=3,
            is_ready=partial(_serves, ready, f"{url}/readyz"),
            before=partial(ready.unlink, missing_ok=True),
            renewable=True,
        )
    for number in range(1, options.forwarders + 1):
        forward = Command(f"forward-{number}", _manage(options, "forward"), env)
        yield Part(forward, stage=3, renewable=True)


def _celery_parts(options: Options, env: dict[str, str], folder: Folder) -> Iterator[Part]:
    """Workers, each of all queues (eventhub/base/broker.py), and beat."""
    for number in range(1, options.workers + 1):
        name = f"worker-{number}"
        argv = (sys.executable, *celery_worker(f"{name}@%h"))
        worker = Command(name, argv, env, grace_s=limits.GRACEFUL_S_MAX + 1.0)
        yield Part(worker, stage=3, renewable=True)
    if not options.workers:
        return
    timetable = ("-s", str(folder.root / "beat"), "--pidfile", "")
    argv = (sys.executable, *CELERY, "beat", *timetable)
    yield Part(Command("beat", argv, env), stage=3, renewable=True)


def celery_worker(name: str) -> tuple[str, ...]:
    """The arguments of Python that run a worker of that name (`worker-1@%h`)."""
    quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat")
    return (*CELERY, "worker", "-n", name, *quiet)


def _demo(
    options: Options, env: dict[str, str], hub: socket.socket, sink: socket.socket, folder: Folder
) -> Part:
    words = ("--url", port.local_url(hub), "--sink-fd", str(sink.fileno()))
    command = Command(
        "demo", _manage(options, "demo", *words), env, grace_s=1.5, fds=(sink.fileno(),)
    )
    return Part(command, stage=4, is_ready=folder.credentials.exists)


def _allowing(env: dict[str, str], sink: socket.socket) -> str:
    """The private addresses that may be called: those of the operator, and the demo's receiver."""
    given = env.get("EVENTHUB_CALLBACK_ALLOW", "")
    host, number = sink.getsockname()[:2]
    return ",".join(filter(None, (given, f"{host}:{number}")))


def _manage(options: Options, *words: str) -> tuple[str, ...]:
    return (sys.executable, str(options.manage), *words)


def _serves(ready: Path, url: str) -> bool:
    return ready.exists() and _answers(url)


def _answers(url: str) -> bool:
    """Whether GET gives 200. Asked without a proxy: it is this machine."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=READY_PROBE_TIMEOUT_S) as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        return False
