"""The hub on one machine: which parts there are, in which order, with which environment. `run` is
`manage.py up`."""

import os
import socket
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from eventhub import limits
from eventhub.env import read_env
from eventhub.up import banner, datafolder, identity, listener
from eventhub.up.datafolder import Folder, FolderUnusable
from eventhub.up.guarded import Command, Identity
from eventhub.up.identity import NoIdentity
from eventhub.up.listener import PortBusy
from eventhub.up.output import Output
from eventhub.up.postgres import Postgres
from eventhub.up.redisserver import Redis
from eventhub.up.supervisor import HubFailed, Part, Supervisor

HOME = Path(__file__).resolve().parents[2]  # the folder of manage.py
READY_PROBE_TIMEOUT_S = 1.0


class Options(NamedTuple):
    """What `manage.py up` takes."""

    data: Path
    host: str = "127.0.0.1"
    port: int = 8000
    web: int = 2
    demo: bool = False
    restarts_per_minute: int = limits.RESTARTS_PER_MINUTE_MAX
    manage: Path = HOME / "manage.py"  # runs migrate, web and demo


class Servers(NamedTuple):
    """The embedded servers; None where a URL in the environment replaces one."""

    postgres: Postgres | None
    redis: Redis | None

    @classmethod
    def choose(cls, folder: Folder, sockets: Path) -> "Servers":
        given = read_env()
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
                yield Part(self.postgres.initdb(env, sync=sync), stage=0, once=True)
            yield Part(
                self.postgres.server(env),
                stage=1,
                is_ready=self.postgres.is_ready,
                ready_timeout_s=limits.RECOVERY_TIMEOUT_S_MAX,
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
    def take(cls, data: Path) -> "Place":
        """Raises FolderUnusable, NoIdentity."""
        folder = datafolder.open_folder(data)
        lock = datafolder.acquire_lock(folder)
        with datafolder.usable(folder.root):
            who = identity.choose(folder, HOME)
            sockets = datafolder.socket_folder(folder, who.owner)
        return cls(folder, lock, who, sockets)

    def environment(self, servers: Servers) -> dict[str, str]:
        """What every part gets. The folder and its new files belong to the parts' identity
        afterwards. Raises FolderUnusable."""
        env = dict(os.environ)
        env.update(servers.environment())
        env["EVENTHUB_DATA"] = str(self.folder.root)
        env["PYTHONUNBUFFERED"] = "1"
        with datafolder.usable(self.folder.root):
            if not env.get("EVENTHUB_SECRET_KEY"):
                env["EVENTHUB_SECRET_KEY"] = datafolder.read_secret_key(self.folder)
            env["PROMETHEUS_MULTIPROC_DIR"] = str(datafolder.wipe_metrics(self.folder))
            if os.geteuid() == 0:
                datafolder.give(self.folder.root, self.identity.owner)
                datafolder.give(self.sockets, self.identity.owner)
        return env

    def leave(self) -> None:
        datafolder.remove_socket_folder(self.folder, self.sockets)
        os.close(self.lock)


def run(options: Options) -> int:
    """Run the hub until a signal; returns the exit status."""
    output = Output()
    try:
        with listener.listen(options.host, options.port) as port:
            place = Place.take(options.data)
            try:
                return _run(options, output, place, port)
            finally:
                place.leave()
    except (PortBusy, FolderUnusable, NoIdentity, HubFailed) as error:
        output.say(str(error))
        return 1
    except KeyboardInterrupt:
        return 130


def _run(options: Options, output: Output, place: Place, port: socket.socket) -> int:
    if place.identity.note:
        output.say(place.identity.note)
    servers = Servers.choose(place.folder, place.sockets)
    env = place.environment(servers)
    parts = [*servers.parts(env), *_own_parts(options, env, port, place.folder)]
    supervisor = Supervisor(
        parts,
        place.identity,
        output,
        keep_fds=(place.lock,),
        restarts_per_minute=options.restarts_per_minute,
    )
    url = listener.local_url(port)
    ready = banner.text(url, place.folder, servers.environment(), demo=options.demo)
    supervisor.run(lambda: output.show(ready))
    return 0


def _own_parts(
    options: Options, env: dict[str, str], port: socket.socket, folder: Folder
) -> Iterator[Part]:
    """What runs from this repository."""
    url = listener.local_url(port)
    migrate = Command("migrate", _manage(options, "migrate", "--no-input", "-v", "1"), env)
    yield Part(migrate, stage=2, once=True, ready_timeout_s=limits.RECOVERY_TIMEOUT_S_MAX)
    for number in range(1, options.web + 1):
        argv = _manage(options, "web", "--fd", str(port.fileno()))
        web = Command(
            f"web-{number}", argv, env, grace_s=limits.GRACEFUL_S_MAX + 1.0, fds=(port.fileno(),)
        )
        yield Part(web, stage=3, is_ready=lambda: _answers(f"{url}/readyz"))
    if options.demo:
        demo = Command("demo", _manage(options, "demo", "--url", url), env, grace_s=1.5)
        yield Part(demo, stage=4, is_ready=folder.credentials.exists)


def _manage(options: Options, *words: str) -> tuple[str, ...]:
    return (sys.executable, str(options.manage), *words)


def _answers(url: str) -> bool:
    """Whether GET gives 200. Asked without a proxy: it is this machine."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=READY_PROBE_TIMEOUT_S) as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        return False
