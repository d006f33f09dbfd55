"""Any process of the hub may be killed: none is left behind, the others go on, no data is lost."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from eventhub.base import limits
from eventhub.supervisor.restarts import DELAYS_S
from tests import prepared
from tests.integration.up_process import Hub, processes_of, wait_until


@pytest.fixture(scope="module")
def _data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for one hub after the other."""
    return tmp_path_factory.mktemp("ended") / "data"


@pytest.fixture
def data(_data: Path) -> Iterator[Path]:
    yield _data
    wait_until(lambda: not processes_of(_data), "all processes to end")


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """Run a hub that all tests share, so each test must leave it complete."""
    hub = with_data(tmp_path_factory.mktemp("lasting") / "data", "--restarts", "100")
    yield hub
    hub.interrupt()
    hub.wait_end()
    hub.wait_gone()


def with_data(data: Path, *words: str) -> Hub:
    if not data.exists():
        prepared.fill(data)
    hub = Hub(data, *words).wait_ready()
    hub.execute("CREATE TABLE IF NOT EXISTS stored AS SELECT generate_series(1, 1000)")
    return hub


@contextmanager
def restarted(hub: Hub, part: str) -> Iterator[None]:
    """Wait until the process that the block restarts is ready."""
    count = hub.text.count(f"{part} is ready")
    yield
    hub.wait_line(f"{part} is ready", count + 1)


def assert_stored(hub: Hub) -> None:
    assert hub.execute("SELECT count(*) FROM stored") == [(1000,)]


def test_interrupt_stops_in_reverse_and_leaves_no_process(data: Path) -> None:
    hub = with_data(data)
    assert len(hub.leftovers()) > 8
    hub.interrupt()
    assert hub.wait_end(limits.STOP_TIMEOUT_S_MAX) == 0
    assert hub.leftovers() == []
    assert "database system is shut down" in hub.text
    assert hub.text.rstrip().endswith("stopped")


def test_killed_supervisor_leaves_no_process_and_the_next_start_continues(data: Path) -> None:
    hub = with_data(data)
    hub.process.kill()
    again = Hub(data).wait_ready()  # at once: it waits for processes that still stop
    try:
        assert_stored(again)
        postmasters = [line for line in hub.leftovers() if "bin/postgres\\x00-D" in line]
        guarded = [line for line in postmasters if "guardian.py" not in line]
        assert len(guarded) == 1
    finally:
        again.process.kill()
    again.wait_gone()  # no other start follows


def test_killed_postgres_is_restarted_with_its_data_and_web_stays(lasting: Hub) -> None:
    web = {lasting.part("web-1").pid, lasting.part("web-2").pid}
    with restarted(lasting, "postgres"):
        lasting.part("postgres").kill()
    assert_stored(lasting)
    assert {lasting.part("web-1").pid, lasting.part("web-2").pid} == web


def test_killed_guardian_of_postgres_never_leads_to_two_postmasters(lasting: Hub) -> None:
    postmaster = lasting.part("postgres")
    with restarted(lasting, "postgres"):
        lasting.guardian("postgres").kill()
    assert not postmaster.is_running()
    assert lasting.part("postgres").pid != postmaster.pid
    assert_stored(lasting)


def test_killed_guardian_with_stopped_child_is_cleared(lasting: Hub) -> None:
    """A child that cannot react to a signal is killed before its process is restarted."""
    postmaster = lasting.part("postgres")
    workers = postmaster.children(recursive=True)
    for process in (*workers, postmaster):
        process.suspend()
    with restarted(lasting, "postgres"):
        lasting.guardian("postgres").kill()
    assert not [process for process in (*workers, postmaster) if process.is_running()]


def test_killed_redis_is_restarted(lasting: Hub) -> None:
    with restarted(lasting, "redis"):
        lasting.part("redis").kill()


def test_killed_web_processes_do_not_close_the_port(lasting: Hub) -> None:
    old = [lasting.part("web-1"), lasting.part("web-2")]
    with restarted(lasting, "web-1"), restarted(lasting, "web-2"):
        for process in old:
            process.kill()
        psutil.wait_procs(old)  # one that is being killed could still accept
        pid = int(lasting.get())  # waits in the backlog until a new one accepts
        assert pid not in {process.pid for process in old}


def test_killed_guardian_of_web_takes_its_web_with_it(lasting: Hub) -> None:
    web = lasting.part("web-1")
    with restarted(lasting, "web-1"):
        lasting.guardian("web-1").kill()
    assert not web.is_running()
    assert psutil.pid_exists(lasting.part("web-1").pid)


def test_process_that_keeps_crashing_stops_the_hub_with_a_reason(data: Path) -> None:
    hub = Hub(data, "--restarts", "2", STAND_IN_WEB="crash")
    assert hub.wait_end() == 1
    assert "after 2 restarts in a row" in hub.text
    assert "cannot continue" in hub.text
    assert hub.leftovers() == []


def test_process_that_ignores_the_stop_is_killed_in_time(data: Path) -> None:
    hub = Hub(data, STAND_IN_WEB="stubborn").wait_ready()
    hub.interrupt()
    assert hub.wait_end(limits.STOP_TIMEOUT_S_MAX) == 0
    assert hub.leftovers() == []


def test_postgres_has_ended_when_the_hub_prints_stopped(data: Path) -> None:
    """Its guardian was killed just before Ctrl-C: the hub printed `stopped` too early."""
    hub = with_data(data)
    hub.process.send_signal(signal.SIGSTOP)
    postmaster = hub.part("postgres")
    for process in (*postmaster.children(), postmaster):
        process.suspend()  # it can react to no signal but SIGKILL
    hub.guardian("postgres").kill()
    hub.interrupt()
    hub.process.send_signal(signal.SIGCONT)
    hub.wait_line("stopping")
    hub.interrupt()
    assert hub.wait_end() == 0
    assert hub.leftovers() == []
    assert hub.text.rstrip().endswith("stopped")


def test_disk_that_fails_for_a_while_does_not_end_the_hub(lasting: Hub) -> None:
    """The check of the disk's free space failed, and the hub ended without a reason."""
    away = lasting.data.with_name("away")
    with restarted(lasting, "postgres"):
        lasting.data.rename(away)
        lasting.part("postgres").kill()
        lasting.wait_line("the disk does not answer")
        lasting.wait_line("postgres cannot be started")
        away.rename(lasting.data)
    assert_stored(lasting)


def test_second_interrupt_kills(data: Path) -> None:
    hub = Hub(data, STAND_IN_WEB="stubborn").wait_ready()
    hub.interrupt()
    hub.wait_line("stopping")
    hub.interrupt()
    assert hub.wait_end(2.5) == 0  # its web processes alone have 3 s
    assert hub.leftovers() == []


def test_processes_are_replaced_one_by_one(lasting: Hub) -> None:
    """The servers stay; of two web processes one serves at any time."""
    before = {part: lasting.part(part).pid for part in ("web-1", "web-2", "postgres")}
    lasting.process.send_signal(signal.SIGUSR2)
    pids: set[int] = set()

    def replaced() -> bool:
        pids.add(int(lasting.get()))  # refused if no process served or held the port
        return "all processes are replaced" in lasting.text

    wait_until(replaced, "new processes")
    after = {part: lasting.part(part).pid for part in before}
    assert after["postgres"] == before["postgres"]
    assert after["web-1"] != before["web-1"]
    assert after["web-2"] != before["web-2"]
    lines = [line for line in lasting.lines if line.startswith("hub ")]
    reported = [line.split(" | ")[1].strip() for line in lines[-4:]]
    assert reported[0] == "replacing web-1, web-2"
    assert [line.split(" is ")[0] for line in reported[1:3]] == ["web-1", "web-2"]
    assert_stored(lasting)


@pytest.mark.parametrize("status", [os.EX_CONFIG, 1])
def test_a_version_that_cannot_run_replaces_at_most_one_process(data: Path, status: int) -> None:
    """The tables are not those that it needs, or its files are broken; the old processes go on
    serving. After the repair the next signal does not wait for the pause before a restart."""
    unfit = data.parent / "unfit"
    hub = Hub(data, STAND_IN_UNFIT=str(unfit)).wait_ready()
    unfit.write_text(str(status))
    hub.process.send_signal(signal.SIGUSR2)
    hub.wait_line("web-1 cannot run; the reason is in its output above. The other processes are")
    assert int(hub.get()) == hub.part("web-2").pid
    assert hub.text.count("processes are not replaced") == 1
    hub.wait_line(f"restarting it in {DELAYS_S[5]:g} s")
    unfit.unlink()
    began_s = time.monotonic()
    hub.process.send_signal(signal.SIGUSR2)
    hub.wait_line("web-1 is ready", 2)
    assert time.monotonic() - began_s < DELAYS_S[5] - 1.0
    hub.wait_line("all processes are replaced")
    assert hub.text.count("web-2 is ready") == 2
    hub.interrupt()
    assert hub.wait_end(limits.STOP_TIMEOUT_S_MAX) == 0
