"""A standalone Spark cluster on loopback: a real master and workers with a shared secret.

Its processes end with the block, or with this process, however that ends.
"""

import json
import os
import secrets
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple
from urllib.error import URLError
from urllib.request import urlopen

from eventhub.base.guarded_process import Command, GuardedProcess, current_identity
from sparkjobs.runs.java import find_java, home_of

READY_S = 60.0
POLL_S = 0.1
_HOST = "127.0.0.1"


class Cluster(NamedTuple):
    """A running cluster. `conf`: the properties file for EVENTHUB_SPARK_CONF."""

    master: str
    conf: Path
    processes: list[GuardedProcess]  # the master and the workers

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes that started the master and the workers."""
        return tuple(process.pid for process in self.processes)


class ClusterFailed(Exception):
    """A part of the cluster did not become ready; the end of its output."""


@contextmanager
def standalone(folder: Path, workers: int = 2, cores: int = 1) -> Iterator[Cluster]:
    """Start a cluster of workers with `cores` cores and 2 GiB each, and its files in the folder.
    Raises ClusterFailed, NoJava.
    """
    folder.mkdir(parents=True, exist_ok=True)
    port, screen = _free_ports(2)
    conf = _conf(folder)
    master = f"spark://{_HOST}:{port}"
    with ExitStack() as stack:
        cluster = Cluster(master, conf, [])

        def start(name: str, program: str, *words: str) -> None:
            process = _started(folder, name, (program, "--properties-file", str(conf), *words))
            stack.callback(process.end)
            cluster.processes.append(process)

        ports = ("--port", str(port), "--webui-port", str(screen))
        start("master", "org.apache.spark.deploy.master.Master", "--host", _HOST, *ports)
        own = ("--cores", str(cores), "--memory", "2g", "--webui-port", "0", "--host", _HOST)
        for number in range(workers):
            name = f"worker-{number}"
            place = ("--work-dir", str(folder / name))
            start(name, "org.apache.spark.deploy.worker.Worker", *own, *place, master)
        _wait(cluster, screen, workers, folder)
        yield cluster


def _conf(folder: Path) -> Path:
    path = folder / "spark.conf"
    properties = {
        "spark.authenticate": "true",
        "spark.authenticate.secret": secrets.token_hex(16),
        "spark.master.rest.enabled": "false",
        "spark.local.dir": str(folder / "local"),
        "spark.executor.cores": "1",
        "spark.executor.memory": "1g",
    }
    path.touch(0o600)
    path.write_text("".join(f"{name} {text}\n" for name, text in properties.items()))
    return path


def _started(folder: Path, name: str, words: tuple[str, ...]) -> GuardedProcess:
    home = home_of(find_java(os.environ.get("JAVA_HOME", "")), folder / "java")
    env = {
        **os.environ,
        "JAVA_HOME": str(home),
        "SPARK_LOCAL_IP": _HOST,
        "SPARK_NO_DAEMONIZE": "1",
        "SPARK_DAEMON_MEMORY": "512m",
    }
    spec = find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    argv = (str(Path(spec.origin).parent / "bin" / "spark-class"), *words)
    with (folder / f"{name}.log").open("ab") as output:
        return GuardedProcess(
            Command(name, argv, env, signal.SIGTERM), current_identity(), output=output
        )


def _wait(cluster: Cluster, screen: int, workers: int, folder: Path) -> None:
    """Wait until the master knows all workers."""
    until = time.monotonic() + READY_S
    while _alive(screen) < workers:
        ended = [process for process in cluster.processes if process.poll() is not None]
        if ended or time.monotonic() > until:
            name = (ended or cluster.processes)[0].command.name
            raise ClusterFailed((folder / f"{name}.log").read_text()[-2_000:])
        time.sleep(POLL_S)


def _alive(screen: int) -> int:
    with suppress(URLError, OSError, ValueError), urlopen(f"http://{_HOST}:{screen}/json/") as page:
        return sum(worker["state"] == "ALIVE" for worker in json.load(page)["workers"])
    return 0


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind((_HOST, 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
