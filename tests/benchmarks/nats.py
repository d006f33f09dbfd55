"""The server of NATS with JetStream, for comparison: `nats-server` of the search path, or the
program that EVENTHUB_BENCH_NATS names. Plain.
"""

import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

START_S = 20.0


class NatsServer(NamedTuple):
    """A running server."""

    port: int
    pid: int


def program() -> str | None:
    """Return the path of the server's program, if there is one."""
    return os.environ.get("EVENTHUB_BENCH_NATS") or shutil.which("nats-server")


def flushes() -> bool:
    """Return whether there is a server that can flush each message to the disk: since 2.10."""
    found = program()
    if found is None:
        return False
    text = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
    version = re.search(r"v(\d+)\.(\d+)", text)
    return version is not None and (int(version[1]), int(version[2])) >= (2, 10)


@contextmanager
def running(*, sync: bool = False) -> Iterator[NatsServer]:
    """Run a server with empty data on a port of loopback. `sync`: it flushes each message to the
    disk before it acknowledges it.
    """
    found = program()
    assert found is not None
    data = Path(tempfile.mkdtemp(prefix="eventhub-bench-nats-"))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    words = [found, "-js", "-sd", str(data), "-a", "127.0.0.1", "-p", str(port)]
    if sync:
        (data / "sync.conf").write_text("jetstream { sync_interval: always }\n")
        words += ["-c", str(data / "sync.conf")]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            until_s = time.monotonic() + START_S
            while not _answers(port):
                if time.monotonic() > until_s or process.poll() is not None:
                    raise OSError(f"{found} does not start")
                time.sleep(0.02)
            yield NatsServer(port, process.pid)
        finally:
            process.terminate()
            process.wait()
            shutil.rmtree(data, ignore_errors=True)


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), 1.0) as opened:
            return opened.recv(16).startswith(b"INFO")
    except OSError:
        return False
