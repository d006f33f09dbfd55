"""A hub for one benchmark: a database on the world's server, a web process, a forwarder, a worker
of callbacks, and a port on which the benchmark receives them.
"""

import http.client
import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from eventhub.base.forking import ForkServer
from eventhub.supervisor.hub import HOME, celery_worker
from tests import forked
from tests.benchmarks.events import CLIENT
from tests.benchmarks.load.jobs import Target
from tests.benchmarks.load.start import LoadFailed
from tests.benchmarks.workers import READY
from tests.live_processes import MANAGE, LiveProcess, WebProcess

START_S = 60.0
POLL_S = 0.02
BULK_PATH = "/v1/registrations/bulk"
BULK_LINES = 1_000  # sent at once
MB = 1_000_000
TEMPLATE = "hubs"
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Hub:
    """A hub, used through its public routes unless stated otherwise."""

    def __init__(
        self,
        name: str,
        env: Mapping[str, str],
        url: str,
        folder: Path,
        forks: ForkServer | None = None,
    ) -> None:
        """Prepare a hub. `url`: of a migrated database."""
        folder.mkdir()
        metrics = folder / "metrics"
        metrics.mkdir()
        self.name = name
        self._forks = forks
        self.port = _free_port()  # of the receiver, which the endpoints name
        self.url = url
        self.env = {
            **env,
            "DATABASE_URL": self.url,
            "DATABASE_DIRECT_URL": self.url,
            "EVENTHUB_DATA": str(folder),
            "EVENTHUB_CALLBACK_ALLOW": "127.0.0.0/8",
            "PROMETHEUS_MULTIPROC_DIR": str(metrics),
        }
        self.key = self.new_key(CLIENT, "emit:*", "listen:*", "manage:*")
        self.web = WebProcess(f"{name}-web", self.env, folder / "web.log")
        self.forwarder = self._process("forward", (MANAGE, "forward"), folder)
        self.worker = self._process("worker", celery_worker(f"{name}@%h"), folder)
        self._second = [
            self._process("forward-2", (MANAGE, "forward"), folder),
            self._process("worker-2", celery_worker(f"{name}-2@%h"), folder),
        ]

    def start(self) -> None:
        """Start all processes. Raise LoadFailed."""
        self.web.start(wait=False)
        self.worker.start()
        self.forwarder.start()
        self.web.wait_ready()
        self._until(READY, self.worker)
        self._until("forwarder_ready", self.forwarder)

    def start_second(self) -> None:
        """Start a second forwarder and a second worker, as in `manage.py up`. Raise LoadFailed."""
        forwarder, worker = self._second
        for process in self._second:
            process.start()
        self._until("forwarder_ready", forwarder)
        self._until(READY, worker)

    def stop(self) -> None:
        for process in (self.forwarder, self.worker, self.web, *self._second):
            process.stop()

    def cpu_s(self) -> float:
        """Return the CPU time of the hub's processes, without the servers."""
        running = [self.forwarder, self.worker, self.web, *(p for p in self._second if p.running)]
        used = [psutil.Process(process.pid).cpu_times() for process in running]
        return float(sum(each.user + each.system for each in used))

    def forwarder_cpu_s(self) -> float:
        """Return the CPU time of the forwarder."""
        used = psutil.Process(self.forwarder.pid).cpu_times()
        return float(used.user + used.system)

    def manage(self, *words: str) -> str:
        """Return what `manage.py WORDS` printed. Raise LoadFailed."""
        try:
            return output_of((MANAGE, *words), self.env, self._forks)
        except subprocess.CalledProcessError as error:
            raise LoadFailed(f"manage.py {words[0]}: {error.stderr[-1000:]}") from error

    def build_index(self, stream: str) -> bool:
        """Build the match index of a stream by the hub's command; return whether it did."""
        try:
            self.manage("index", "build", "--stream", stream)
        except LoadFailed as error:
            print(f"{self.name}: no index was built: {error}", file=sys.stderr)
            return False
        return True

    def index_epoch(self, stream_id: int) -> float:
        """Return the epoch of the match index that the forwarder uses for a stream; 0: none."""
        return self.metrics().get(f'eventhub_index_epoch{{stream="{stream_id}"}}', 0.0)

    def new_key(self, client: str, *grants: str) -> str:
        words = [word for grant in grants for word in ("--grant", grant)]
        return self.manage("createkey", client, *words).split()[-1]

    def call(self, method: str, path: str, body: Any = None, key: str = "") -> Any:
        """Return the JSON of an answer. Raise LoadFailed."""
        headers = {"Authorization": f"Bearer {key or self.key}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        with closing(http.client.HTTPConnection("127.0.0.1", self.web.port, timeout=60)) as opened:
            opened.request(method, path, data, headers)
            answer = opened.getresponse()
            text = answer.read()
        if answer.status >= 300:
            raise LoadFailed(f"{method} {path}: {answer.status} {text[:400]!r}")
        return json.loads(text) if text else None

    def stream(self, name: str) -> int:
        """Create a stream; return its number."""
        self.call("PUT", f"/v1/streams/{name}", {})
        [(found,)] = self.rows("SELECT id FROM streams WHERE name = %s", name)
        return int(found)

    def endpoint(self, path: str, key: str = "") -> int:
        """Create an endpoint at the receiver's port; return its id."""
        url = f"http://127.0.0.1:{self.port}/{path}"
        return int(self.call("POST", "/v1/endpoints", {"url": url}, key)["id"])

    def target(self, stream: str) -> Target:
        headers = {"authorization": f"Bearer {self.key}", "content-type": "application/json"}
        return Target(self.web.port, f"/v1/streams/{stream}/events", headers)

    def register(self, lines: Iterable[bytes], key: str = "", *, some: bool = False) -> int:
        """Create registrations by the bulk route; return how many. Raise LoadFailed unless all were
        created or `some` is enough.
        """
        with closing(http.client.HTTPConnection("127.0.0.1", self.web.port, timeout=120)) as opened:
            headers = {
                "Authorization": f"Bearer {key or self.key}",
                "Content-Type": "application/x-ndjson",
                "Transfer-Encoding": "chunked",
            }
            opened.request("POST", BULK_PATH, _pieces(lines), headers, encode_chunked=True)
            replies = [json.loads(line) for line in opened.getresponse().read().splitlines()]
        if not replies or not replies[-1].get("done") or (replies[-1]["refused"] and not some):
            raise LoadFailed(f"bulk: {replies[:2]} ... {replies[-1:]}")
        return int(replies[-1]["created"])

    def rows(self, query: str, *args: Any) -> list[tuple[Any, ...]]:
        """Return rows of the database."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(query.encode(), args)
            return cursor.fetchall() if cursor.description else []

    def metrics(self) -> dict[str, float]:
        """Return the metrics of all processes of the hub, by name and labels as they are shown."""
        with _DIRECT.open(f"{self.web.url}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        pairs = (line.rsplit(" ", 1) for line in lines if line and not line.startswith("#"))
        return {name: float(value) for name, value in pairs}

    def forwarder_mb(self) -> float:
        """Return the forwarder's private memory in MB."""
        return float(psutil.Process(self.forwarder.pid).memory_full_info().uss / MB)

    def settled(self, stream_id: int) -> bool:
        """Return whether all events of a stream are matched and all pending deliveries done."""
        return settled(self.url, stream_id)

    def _process(self, name: str, argv: tuple[str, ...], folder: Path) -> LiveProcess:
        log, forked = folder / f"{name}.log", self._forks is not None
        return LiveProcess(f"{self.name}-{name}", argv, self.env, log, forked=forked)

    def _until(self, word: str, process: LiveProcess) -> None:
        until = time.monotonic() + START_S
        while word not in process.log():
            if time.monotonic() > until or not process.running:
                raise LoadFailed(f"{process.name} is not ready: {process.log()[-1000:]}")
            time.sleep(POLL_S)


def settled(url: str, stream_id: int) -> bool:
    """Return whether all events of a stream are matched and all its pending deliveries done."""
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(
            "SELECT COALESCE((SELECT f.sequence FROM forwarding f WHERE f.stream_id = h.stream_id),"
            "                0) >= h.sequence"
            "   AND NOT EXISTS (SELECT FROM deliveries WHERE state = 'pending')"
            "  FROM heads h WHERE h.stream_id = %s",
            (stream_id,),
        ).fetchone()
    return bool(row is not None and row[0])


def _pieces(lines: Iterable[bytes]) -> Iterable[bytes]:
    waiting: list[bytes] = []
    for line in lines:
        waiting.append(line)
        if len(waiting) == BULK_LINES:
            yield b"\n".join(waiting) + b"\n"
            waiting = []
    if waiting:
        yield b"\n".join(waiting) + b"\n"


def output_of(words: Sequence[str], env: Mapping[str, str], forks: ForkServer | None) -> str:
    """Return the output of `python WORDS`. Raise CalledProcessError, with what it reported."""
    argv = [sys.executable, *words]
    if forks is not None:
        done = forked.run(argv, env)
    else:
        done = subprocess.run(argv, cwd=HOME, env=env, capture_output=True, text=True)
    print(done.stderr, end="", file=sys.stderr, flush=True)
    done.check_returncode()
    return done.stdout


def migrated(env: Mapping[str, str], forks: ForkServer | None) -> str:
    """Migrate the world's database, which nobody uses yet; return the name of a copy, from which
    those of hubs are copied.
    """
    output_of((MANAGE, "migrate", "-v", "0"), env, forks)
    _copy(env, conninfo_to_dict(env["DATABASE_URL"])["dbname"], TEMPLATE)
    return TEMPLATE


def copied(env: Mapping[str, str], template: str, name: str, forks: ForkServer | None) -> str:
    """Return the URL of a new database, whose log is checked."""
    _copy(env, template, f"hub_{name}")
    url = make_conninfo(env["DATABASE_URL"], dbname=f"hub_{name}")
    own = {**env, "DATABASE_URL": url, "DATABASE_DIRECT_URL": url}
    output_of((MANAGE, "boot", "-v", "0"), own, forks)
    return url


def _copy(env: Mapping[str, str], of: str, name: str) -> None:
    server = make_conninfo(env["DATABASE_URL"], dbname="postgres")
    words = map(sql.Identifier, (name, of))
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(*words))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
