"""A whole data folder restored from a snapshot of its volume: the mark that reveals it is outside
of the folder, in the machine's memory.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from tests.integration.up_process import EMBEDDED_VARIABLES, HOME, Hub, wait_until
from tests.live import Answer, call

EXPORT = re.compile(r"^\s*export (\w+)=(\S+)$", re.MULTILINE)
FEW = ("--web", "1", "--forwarders", "0", "--workers", "0")
EVENT = {"domain": "shop", "type": "order.placed"}


def manage(*words: str, **given: str) -> str:
    """Run `manage.py WORDS` and return its output."""
    inherited = {k: v for k, v in os.environ.items() if k not in EMBEDDED_VARIABLES}
    command = [sys.executable, str(HOME / "manage.py"), *words]
    done = subprocess.run(
        command, env={**inherited, **given}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class Shop:
    """A stream of a hub, with a key for all actions."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self._env = exports = {
            name: shlex.split(word)[0] for name, word in EXPORT.findall(hub.text)
        }
        self.mark = Path(exports["EVENTHUB_MARK_URL"].removeprefix("file://"))
        grants = [word for one in ("emit", "listen", "manage") for word in ("--grant", f"{one}:*")]
        self._key = manage("createkey", "shop", *grants, **exports).strip()
        assert self.ask("PUT", "", {}).status == 201

    @property
    def url(self) -> str:
        return self._env["DATABASE_URL"]

    def ask(self, method: str, path: str, body: Any = None) -> Answer:
        headers = {"Authorization": f"Bearer {self._key}"}
        return call(self.hub.url, method, f"/v1/streams/orders{path}", body, headers=headers)

    def emit(self, count: int) -> tuple[str, int]:
        found = self.ask("POST", "/events", [EVENT] * count).json["ranges"][-1]
        return found["segment"], found["last"]

    def read(self, after: tuple[str, int]) -> Answer:
        return self.ask("GET", f"/events?from={after[0]}:{after[1]}")

    def marked(self, sequence: int) -> bool:
        texts = (one.read_text() for one in self.mark.iterdir() if one.is_file())
        return any(f'"sequence": {sequence},' in one for one in texts)


@contextmanager
def stopped(hub: Hub) -> Iterator[None]:
    """Suspend PostgreSQL, so that a copy is of one moment."""
    server = hub.part("postgres")
    processes = [server, *server.children(recursive=True)]
    for process in processes:
        process.suspend()
    try:
        yield
    finally:
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.resume()


def test_a_listener_ahead_of_a_restored_data_folder_is_refused(tmp_path: Path) -> None:
    data, snapshot = tmp_path / "var", tmp_path / "snapshot"
    shop = Shop(Hub(data, *FEW, script=HOME / "manage.py").wait_ready())
    try:
        shop.emit(3)
        with stopped(shop.hub):
            sockets = shutil.ignore_patterns("run")
            shutil.copytree(data, snapshot, symlinks=True, ignore=sockets)
        ahead = shop.emit(3)
        wait_until(lambda: shop.marked(ahead[1]), "the mark")
        shop.hub.process.kill()
        shop.hub.wait_gone()
        shutil.rmtree(data)
        shutil.copytree(snapshot, data, symlinks=True)
        shop.hub = Hub(data, *FEW, script=HOME / "manage.py").wait_ready()
        segment, last = shop.emit(4)
        assert (segment != ahead[0], last) == (True, 7)
        shop.read(ahead).refused(409, "segment_mismatch")
        assert len(shop.read((ahead[0], 3)).json["events"]) == 4
        dump = str(tmp_path / "hub.dump")
        manage("backup", dump, DATABASE_URL=shop.url)
        shop.hub.interrupt()
        shop.hub.wait_end()
        output = manage("restore", dump, "--data", str(data))  # starts its own database
        assert output.endswith("2 streams have new segments\n")
    finally:
        shop.hub.interrupt()
        shop.hub.wait_end()
        shutil.rmtree(shop.mark)
