"""Whatever is killed, nothing is left behind, what can go on goes on, and no data is lost."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from eventhub import limits
from tests.integration.up_process import Hub, wait_until


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    hub = Hub(tmp_path / "data").wait_ready()
    yield hub
    if hub.process.poll() is None:
        hub.interrupt()
        hub.wait_end()
    wait_until(lambda: not hub.leftovers(), "all processes to end")


def fill(hub: Hub) -> None:
    hub.execute("CREATE TABLE kept (number int)")
    hub.execute("INSERT INTO kept SELECT generate_series(1, 1000)")


def assert_kept(hub: Hub) -> None:
    assert hub.execute("SELECT count(*) FROM kept") == [(1000,)]


def test_interrupt_stops_in_reverse_and_leaves_no_process(hub: Hub) -> None:
    assert len(hub.leftovers()) > 8
    hub.interrupt()
    assert hub.wait_end(limits.STOP_TIMEOUT_S_MAX) == 0
    assert hub.leftovers() == []
    assert "database system is shut down" in hub.text
    assert hub.text.rstrip().endswith("stopped")


def test_killed_supervisor_leaves_no_process_and_the_next_start_continues(hub: Hub) -> None:
    fill(hub)
    hub.process.kill()
    again = Hub(hub.data).wait_ready()  # at once: it waits for what is still stopping
    try:
        assert_kept(again)
        postmasters = [line for line in hub.leftovers() if "bin/postgres\\x00-D" in line]
        guarded = [line for line in postmasters if "guardian.py" not in line]
        assert len(guarded) == 1
    finally:
        again.interrupt()
        again.wait_end()


def test_killed_supervisor_alone_leaves_no_process(hub: Hub) -> None:
    hub.process.kill()
    wait_until(lambda: not hub.leftovers(), "the guardians to stop everything")


def test_killed_postgres_is_restarted_with_its_data_and_web_stays(hub: Hub) -> None:
    fill(hub)
    web = {hub.part("web-1").pid, hub.part("web-2").pid}
    hub.part("postgres").kill()
    hub.wait_line("postgres is ready", count=2)
    assert_kept(hub)
    assert {hub.part("web-1").pid, hub.part("web-2").pid} == web


def test_killed_guardian_of_postgres_never_leads_to_two_postmasters(hub: Hub) -> None:
    fill(hub)
    postmaster = hub.part("postgres")
    hub.guardian("postgres").kill()
    hub.wait_line("postgres is ready", count=2)
    assert not postmaster.is_running()
    assert hub.part("postgres").pid != postmaster.pid
    assert_kept(hub)


def test_killed_guardian_with_stopped_child_is_cleared(hub: Hub) -> None:
    """A child that cannot react to a signal is killed before its part starts again."""
    postmaster = hub.part("postgres")
    workers = postmaster.children(recursive=True)
    for process in (*workers, postmaster):
        process.suspend()
    hub.guardian("postgres").kill()
    hub.wait_line("postgres is ready", count=2)
    assert not [process for process in (*workers, postmaster) if process.is_running()]


def test_killed_redis_is_restarted(hub: Hub) -> None:
    hub.part("redis").kill()
    hub.wait_line("redis is ready", count=2)


def test_killed_web_processes_do_not_close_the_port(hub: Hub) -> None:
    old = {hub.part("web-1").pid, hub.part("web-2").pid}
    for pid in old:
        os.kill(pid, signal.SIGKILL)
    assert int(hub.get()) not in old  # waits in the backlog until a new one accepts


def test_killed_guardian_of_web_takes_its_web_with_it(hub: Hub) -> None:
    web = hub.part("web-1")
    hub.guardian("web-1").kill()
    hub.wait_line("web-1 is ready", count=2)
    assert not web.is_running()
    assert psutil.pid_exists(hub.part("web-1").pid)


def test_part_that_keeps_crashing_stops_the_hub_with_a_reason(tmp_path: Path) -> None:
    hub = Hub(tmp_path / "data", STAND_IN_WEB="crash")
    assert hub.wait_end() == 1
    assert f"was restarted {limits.RESTARTS_PER_MINUTE_MAX} times within a minute" in hub.text
    assert "cannot go on" in hub.text
    assert hub.leftovers() == []


def test_part_that_ignores_the_stop_is_killed_in_time(tmp_path: Path) -> None:
    hub = Hub(tmp_path / "data", STAND_IN_WEB="stubborn").wait_ready()
    hub.interrupt()
    assert hub.wait_end(limits.STOP_TIMEOUT_S_MAX) == 0
    assert hub.leftovers() == []


def test_second_interrupt_hurries(tmp_path: Path) -> None:
    hub = Hub(tmp_path / "data", STAND_IN_WEB="stubborn").wait_ready()
    hub.interrupt()
    hub.wait_line("stopping")
    hub.interrupt()
    assert hub.wait_end(2.5) == 0  # its web processes alone have 3 s
    assert hub.leftovers() == []
