"""The servers of one run: an embedded PostgreSQL and Redis of its own, the product, the baselines.
Plain.

Everything listens on loopback and ends with the process that started it.
"""

import json
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import psutil

from eventhub.base.forking import ForkServer
from eventhub.base.guarded_process import Command, GuardedProcess, Identity
from eventhub.supervisor.embedded import embedded
from tests import prepared
from tests.benchmarks import sampler
from tests.benchmarks.hub import Hub, copied, migrated, output_of
from tests.benchmarks.load.jobs import Job, Target
from tests.benchmarks.load.start import run_load
from tests.benchmarks.shape import Pace
from tests.forked import end_server, fork_server

EMBEDDED_VARIABLES = ("DATABASE_URL", "DATABASE_DIRECT_URL", "REDIS_URL", "EVENTHUB_SECRET_KEY")
STREAMS = (
    *("append", "emit", "emit.one", "emit.ids", "emit.batch", "django", "callbacks"),
    *("push", "push.history"),
    *("listen", "replay", "held.0", "held.1", "held.2", "held.3"),
    *("kept.sync", "kept.async", "kept.transient"),
    *("neighbour", "crowded", "crowded.history", "sessions", "sessions.away"),
    "sessions.pull",
)
READY_S = 60.0
PROFILE_S = 10.0


class ServerFailed(Exception):
    """A server did not become ready; the message names its output."""


class Server:
    """One server process on a port of loopback."""

    def __init__(
        self,
        name: str,
        argv: list[str],
        env: dict[str, str],
        data: Path,
        server: ForkServer | None = None,
    ) -> None:
        self.name = name
        self.port = int(argv[-1])
        self.profile = data / f"{name}.profile"
        self._output = data / f"{name}.log"
        command = Command(name, (sys.executable, *argv), env, signal.SIGTERM)
        with self._output.open("ab") as output:
            own = Identity("self", os.getuid(), os.getgid(), (), (os.getuid(), os.getgid()), "")
            self._process = GuardedProcess(command, own, output=output, server=server)

    def wait_ready(self, path: str) -> "Server":
        """Wait until a request is answered with less than 500. Raise ServerFailed."""
        until = time.monotonic() + READY_S
        while not self._answers(path):
            if self._process.poll() is not None or time.monotonic() > until:
                raise ServerFailed(f"{self.name}: {self._output.read_text()[-2000:]}")
            time.sleep(0.02)
        return self

    def end(self) -> None:
        self._process.end()

    @property
    def pid(self) -> int:
        return self._child().pid

    def cpu_s(self) -> float:
        """Return the CPU time that the server has used."""
        used = self._child().cpu_times()
        return float(used.user + used.system)

    @contextmanager
    def sampled(self, title: str) -> Iterator[None]:
        """Sample the server, which runs under the sampler, and print its profile."""
        child = self._child()
        self.profile.unlink(missing_ok=True)
        child.send_signal(signal.SIGUSR1)
        yield
        child.send_signal(signal.SIGUSR2)
        until = time.monotonic() + PROFILE_S
        while not self.profile.exists() and time.monotonic() < until:
            time.sleep(0.02)
        print(sampler.table(self.profile, title), file=sys.stderr, flush=True)

    def _child(self) -> psutil.Process:
        [child] = psutil.Process(self._process.pid).children()
        return child

    def _answers(self, path: str) -> bool:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=2)
        try:
            connection.request("GET", path)
            return connection.getresponse().status < 500
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()


class World:
    """Servers, each started on first use. `forks`: processes of the hub are forked from it; their
    memory and their start then say nothing.
    """

    def __init__(
        self, data: Path, env: dict[str, str], *, profile: bool, forks: ForkServer | None
    ) -> None:
        self.data = data
        self.forks = forks
        self.url = env["DATABASE_URL"]
        self.profile = profile
        self._env = {**os.environ, **env, "PROMETHEUS_MULTIPROC_DIR": str(data / "bench-metrics")}
        self._servers: dict[str, Server] = {}
        self._hubs: dict[str, Hub] = {}
        (data / "bench-metrics").mkdir()
        self._template = migrated(self._env, forks)  # those of hubs are copies of it
        made = json.loads(self._run("-m", "tests.benchmarks.people", *STREAMS))
        self.key: str = made["key"]
        self.streams: dict[str, int] = made["streams"]

    @property
    def env(self) -> dict[str, str]:
        """The environment that every process of the hub needs."""
        return self._env

    def product(self) -> Server:
        """Return `manage.py web`, one process; under the sampler with --profile."""
        sampled = ["-m", "tests.benchmarks.sampler", str(self.data / "product.profile")]
        before = sampled if self.profile else []
        return self._server("product", [*before, "manage.py", "web", "--port"], "/readyz")

    def products(self, count: int) -> list[Server]:
        """Return the product and further processes of it."""
        more = ["manage.py", "web", "--port"]
        return [
            self.product(),
            *(self._server(f"product-{n}", more, "/readyz") for n in range(2, count + 1)),
        ]

    def end_product(self) -> None:
        """End the product; the next one is a fresh process."""
        if "product" in self._servers:
            self._servers.pop("product").end()

    def hub(self, name: str, pace: Pace) -> Hub:
        """Return a hub with a forwarder and a worker, one per benchmark if the pace says so."""
        name = name if pace.own_hubs else "all"
        if name not in self._hubs:
            url = copied(self._env, self._template, name, self.forks)
            folder = self.data / f"hub-{name}"
            self._hubs[name] = made = Hub(name, self._env, url, folder, self.forks)
            made.start()
        return self._hubs[name]

    def baseline(self, app: str) -> Server:
        """Return the server of `module:app` of tests.benchmarks.baselines."""
        argv = ["-m", "tests.benchmarks.baselines.serve", app]
        return self._server(app.replace(":", "-"), argv, "/")

    def broadcaster_target(self, name: str) -> Target:
        """Return the target of another server that broadcasts, a module of baselines."""
        server = self._server(name, ["-m", f"tests.benchmarks.baselines.{name}"], "/")
        return Target(server.port, "/", {"content-type": "application/json"})

    def emit_target(self, stream: str) -> Target:
        headers = {"authorization": f"Bearer {self.key}", "content-type": "application/json"}
        return Target(self.product().port, f"/v1/streams/{stream}/events", headers)

    def baseline_target(self, app: str, path: str = "/") -> Target:
        return Target(self.baseline(app).port, path, {"content-type": "application/json"})

    def server_of(self, target: Target) -> Server:
        """Return the server of a target."""
        [server] = (s for s in self._servers.values() if s.port == target.port)
        return server

    def load(self, title: str, job: Job) -> dict[str, float]:
        """Run a load job against one of the servers.

        Its figures get `cpu_us`: the server's CPU time per request or frame, which says more than a
        rate when the machine has other load; and, for the product, `all_cpu_us`, which includes
        PostgreSQL and Redis.
        """
        [figures] = self.loads(title, [job])
        return figures

    def loads(self, title: str, jobs: Sequence[Job]) -> list[dict[str, float]]:
        """Run load jobs side by side, each against a server of its own; return the figures of each.
        The processor times are those of all servers for each request or frame.
        """
        servers = [self.server_of(job.target) for job in jobs]
        first = servers[0]
        sampled = self.profile and first.name == "product"
        with first.sampled(title) if sampled else nullcontext():
            before_s, stores_s = sum(one.cpu_s() for one in servers), _stores_cpu_s()
            with ThreadPoolExecutor(len(jobs)) as pool:
                found = list(pool.map(run_load, jobs))
            used_s = sum(one.cpu_s() for one in servers) - before_s
            used_by_stores_s = _stores_cpu_s() - stores_s
        count = max(sum(figures.pop("all") for figures in found), 1)
        for figures in found:
            figures.setdefault("cpu_us", used_s / count * 1e6)
            if first.name == "product":
                figures["all_cpu_us"] = (used_s + used_by_stores_s) / count * 1e6
        return found

    def sampled(self, title: str) -> AbstractContextManager[None]:
        """Print, with --profile, the profile of the product during the block."""
        return self.product().sampled(title) if self.profile else nullcontext()

    def fill(self, stream: str, count: int, rare: int = 0) -> dict[str, Any]:
        """Append so many events to an empty stream; return the seconds, and cursors (fill.py)."""
        words = map(str, (self.streams[stream], count, rare))
        output = self._run("-m", "tests.benchmarks.fill", *words)
        found: dict[str, Any] = json.loads(output)
        return found

    def new_key(self, client: str, *grants: str) -> str:
        """Return a key of another client of the same zone."""
        words = [word for grant in grants for word in ("--grant", grant)]
        return self._run("manage.py", "createkey", client, "--zone", "bench", *words).split()[-1]

    def close(self) -> None:
        for hub in self._hubs.values():
            hub.stop()
        for server in self._servers.values():
            server.end()

    def run_child(self, *words: str) -> str:
        """Return the output of one of our modules in a process of its own. Raise
        CalledProcessError.
        """
        return self._run("-m", *words)

    def _server(self, name: str, argv: list[str], path: str) -> Server:
        if name not in self._servers:
            forks = self.forks if "manage.py" in argv else None  # baselines have other settings
            server = Server(name, [*argv, str(_free_port())], self._env, self.data, forks)
            self._servers[name] = server
            server.wait_ready(path)
        return self._servers[name]

    def _run(self, *words: str) -> str:
        return output_of(words, self._env, self.forks)


@contextmanager
def world(*, profile: bool = False, forked: bool = False) -> Iterator[World]:
    """Open a world with empty data, removed afterwards; servers of the environment are not used.
    Processes of the hub that are `forked` start in a tenth of the processor time.
    """
    for name in EMBEDDED_VARIABLES:
        os.environ.pop(name, None)
    os.environ.pop("DJANGO_SETTINGS_MODULE", None)
    data = Path(tempfile.mkdtemp(prefix="eventhub-bench-", dir="/tmp"))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, data, ignore_errors=True)
        prepared.fill(data)
        env = stack.enter_context(embedded(data))
        stack.callback(end_server)
        made = World(data, env, profile=profile, forks=fork_server() if forked else None)
        stack.callback(made.close)
        yield made


def _stores_cpu_s() -> float:
    """Return the CPU time that this run's PostgreSQL and Redis have used."""
    used_s = 0.0
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if process.name().startswith(("postgres", "redis")):
                times = process.cpu_times()  # with those of backends that have ended
                used_s += times.user + times.system + times.children_user + times.children_system
    return used_s


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
