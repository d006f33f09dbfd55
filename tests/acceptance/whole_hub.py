"""A whole hub for tests that restart or restore it: `manage.py up` with a PostgreSQL and a Redis of
its own, on one port and one data folder all the time.
"""

import os
import shlex
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil

from tests import prepared
from tests.acceptance.transports import ListenerSpec
from tests.integration.up_process import EXPORT, HOME, Hub, manage, wait_until
from tests.live import Answer, LiveHub
from tests.live_processes import Processes, WebProcess

FEW = ("--web", "1", "--forwarders", "0", "--workers", "0", "--connectors", "0")


class WholeHub:
    """The hub in the present one of its lives, with a key for all actions."""

    def __init__(self, root: Path) -> None:
        self.data = root / "var"
        prepared.fill(self.data)
        address = WebProcess("up", {}, root / "unused")  # `up` starts the process itself
        self._port = address.port
        self.start()
        self.env = {name: shlex.split(word)[0] for name, word in EXPORT.findall(self.up.text)}
        self.live = LiveHub(
            {**os.environ, **self.env, "DJANGO_SUPERUSER_PASSWORD": ""},
            Processes([address], [], []),
        )
        self._mark = Path(self.env["EVENTHUB_MARK_URL"].removeprefix("file://"))
        grants = [word for one in ("emit", "listen", "manage") for word in ("--grant", f"{one}:*")]
        self.key = manage("createkey", "shop", *grants, **self.env).strip()

    def start(self) -> None:
        """Start all processes; return when they are ready."""
        script = HOME / "manage.py"
        self.up = Hub(self.data, *FEW, port=self._port, script=script).wait_ready()

    def stop(self) -> None:
        """Send SIGTERM, and wait until every process has ended."""
        self.up.process.send_signal(signal.SIGTERM)
        assert self.up.wait_end() == 0
        self.up.wait_gone()

    def kill(self) -> None:
        """Send SIGKILL to the supervisor, and wait until every process has ended."""
        self.up.process.kill()
        self.up.wait_gone()

    def close(self) -> None:
        """Stop what runs, and remove the mark."""
        self.live.close()
        self.up.interrupt()
        self.up.wait_end()
        shutil.rmtree(self._mark)

    def back_up(self, to: Path) -> None:
        """Copy the data folder of one moment, while the hub runs."""
        with self._suspended_postgres():
            ignore = shutil.ignore_patterns("run")  # sockets
            shutil.copytree(self.data, to, symlinks=True, ignore=ignore)

    def restore(self, backup: Path) -> None:
        """Replace the data folder by a copy of a backup."""
        shutil.rmtree(self.data)
        shutil.copytree(backup, self.data, symlinks=True)

    def ask(self, method: str, path: str, body: Any = None) -> Answer:
        return self.live.call(method, f"/v1/{path}", body, key=self.key)

    def get(self, path: str) -> Any:
        """Return the JSON of a GET that must succeed."""
        answer = self.ask("GET", path)
        assert answer.status == 200, answer
        return answer.json

    def create_stream(self, name: str, **policy: Any) -> None:
        assert self.ask("PUT", f"streams/{name}", policy).status == 201

    def emit(self, stream: str, events: Any) -> str:
        """Emit events that must be accepted; return the cursor of the last one."""
        answer = self.ask("POST", f"streams/{stream}/events", events)
        assert answer.status == 200, answer
        run = answer.json["ranges"][-1]
        return f"{run['segment']}:{run['last']}"

    def read(self, stream: str, start: str) -> list[dict[str, Any]]:
        """Return the events after a start, at most a page."""
        found = self.get(f"streams/{stream}/events?limit=1000&from={quote(start)}")
        events: list[dict[str, Any]] = found["events"]
        return events

    def listener(self, stream: str, start: str) -> ListenerSpec:
        return ListenerSpec(self.live, self.key, stream, start, web=0)

    def wait_marked(self, cursor: str) -> None:
        """Wait until the mark has the event; it follows the commits within a second."""
        line = '"{}", "sequence": {},'.format(*cursor.split(":"))

        def marked() -> bool:
            files = [file for file in self._mark.iterdir() if file.is_file()]
            return any(line in file.read_text() for file in files)

        wait_until(marked, "the mark")

    @contextmanager
    def _suspended_postgres(self) -> Iterator[None]:
        server = self.up.part("postgres")
        processes = [server, *server.children(recursive=True)]
        for process in processes:
            process.suspend()
        try:
            yield
        finally:
            for process in processes:
                with suppress(psutil.NoSuchProcess):
                    process.resume()
