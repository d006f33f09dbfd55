"""The hub forks its Python processes from one server, and does without it when it fails."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from eventhub.base.forking import SERVER
from tests import prepared
from tests.forked import counting, fork_server
from tests.integration.up_process import HOME, Hub

MODULE = "loaded_once"
WORKS = """
def adopt_environment():
    pass
print("loaded", flush=True)
"""
STARTED_S = 20.0


@contextmanager
def running(tmp_path: Path, text: str = WORKS) -> Iterator[Hub]:
    """Run a hub with a module that its fork server loads."""
    (tmp_path / f"{MODULE}.py").write_text(text)
    prepared.fill(tmp_path / "data")
    hub = Hub(tmp_path / "data", PYTHONPATH=f"{tmp_path}:{HOME}", STAND_IN_PRELOAD=MODULE,
              PYTHONDONTWRITEBYTECODE="1")  # fmt: skip
    try:
        yield hub
    finally:
        hub.interrupt()
        assert hub.wait_end() == 0, hub.text
        assert hub.leftovers() == []


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    with running(tmp_path_factory.mktemp("forks")) as hub:
        yield hub.wait_ready()


def server_of(hub: Hub) -> psutil.Process:
    for child in psutil.Process(hub.process.pid).children():
        if child.status() != psutil.STATUS_ZOMBIE and str(SERVER) in child.cmdline():
            return child
    raise AssertionError("no fork server")


def is_forked(hub: Hub, name: str) -> bool:
    return hub.guardian(name).parent() == server_of(hub)


def restart(hub: Hub, name: str) -> None:
    ready = hub.text.count(f"{name} is ready")
    hub.part(name).kill()
    hub.wait_line(f"{name} is ready", ready + 1)


def test_python_processes_are_forked_and_the_servers_are_executed(hub: Hub) -> None:
    assert is_forked(hub, "web-1") and is_forked(hub, "web-2")
    assert not is_forked(hub, "postgres") and not is_forked(hub, "redis")
    web = hub.part("web-1")
    assert web.cmdline()[2] == "web"
    assert web.environ()["EVENTHUB_DATA"] == str(hub.data)
    assert int(hub.get()) in (web.pid, hub.part("web-2").pid)


def test_a_killed_process_is_forked_again(hub: Hub) -> None:
    restart(hub, "web-1")
    assert is_forked(hub, "web-1")


def test_a_killed_server_ends_nothing_and_is_started_again(hub: Hub) -> None:
    before = [hub.part("web-1"), hub.part("web-2")]
    server_of(hub).kill()
    hub.wait_line("fork-server ended with status -9: starting another")
    assert [process.is_running() for process in before] == [True, True]
    assert int(hub.get()) in [process.pid for process in before]
    hub.wait_line("loaded", 2)
    restart(hub, "web-1")
    assert is_forked(hub, "web-1")
    hub.guardian("web-2").kill()  # which the supervisor has inherited
    hub.wait_line("the guardian of web-2 was killed")
    hub.wait_line("web-2 is ready", 2)
    assert is_forked(hub, "web-2")
    assert not before[1].is_running()


def test_a_replacement_loads_what_is_on_the_disk(hub: Hub) -> None:
    server, web = server_of(hub), hub.part("web-1")
    done = hub.text.count("all processes are replaced")
    hub.process.send_signal(signal.SIGUSR2)
    hub.wait_line("all processes are replaced", done + 1)
    assert not server.is_running()
    assert not web.is_running()
    assert is_forked(hub, "web-1") and is_forked(hub, "web-2")


def test_processes_start_without_a_module_that_cannot_be_loaded(tmp_path: Path) -> None:
    """They are executed, and report themselves what is wrong with the new version."""
    with running(tmp_path) as hub:
        hub.wait_ready()
        (tmp_path / f"{MODULE}.py").write_text("raise SystemExit('not a hub')")
        hub.process.send_signal(signal.SIGUSR2)
        hub.wait_line("all processes are replaced")
        assert "fork-server | not a hub" in hub.text
        assert "fork-server cannot load the hub" in hub.text
        hub.get()


def test_a_stop_does_not_wait_for_what_is_being_loaded(tmp_path: Path) -> None:
    with running(tmp_path, "import time\nprint('loading', flush=True)\ntime.sleep(600)") as hub:
        hub.wait_line("postgres is ready")
        hub.wait_line("fork-server | loading")
        began = time.monotonic()
        hub.interrupt()
        assert hub.wait_end() == 0
        assert time.monotonic() - began < STARTED_S


def test_processes_of_the_tests_are_forked() -> None:
    """The story: their server started before Django's settings had set TZ, so that nothing could be
    forked from it, and every process imported the hub by itself.
    """
    argv = [sys.executable, str(HOME / "manage.py"), "web"]
    assert fork_server().fits(argv, counting(os.environ))
