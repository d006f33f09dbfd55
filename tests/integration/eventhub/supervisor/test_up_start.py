"""Starting a hub: checks before the start, data of the last run, private files."""

import fcntl
import os
import re
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.chaos.starts.ids import a_thread
from tests.integration.up_process import STAND_IN, Hub


@contextmanager
def running(data: Path, **options: str) -> Iterator[Hub]:
    hub = Hub(data, **options)
    try:
        yield hub.wait_ready()
    finally:
        hub.interrupt()
        hub.wait_end()
        assert hub.leftovers() == []


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """Run a hub in a folder that other users cannot enter."""
    above = tmp_path_factory.mktemp("private")
    above.chmod(0o700)
    with running(above / "data") as hub:
        yield hub


def test_second_start_retains_data_and_secret(tmp_path: Path) -> None:
    """Leftovers of an interrupted first start are no obstacle. Nor are lock files of PostgreSQL:
    after a kill or a power loss the ids in them may belong to any process. That of the
    socket made every start fail, and the hub stopped."""
    data = tmp_path / "data"
    (data / "postgres.new" / "base").mkdir(parents=True)
    with running(data) as hub:
        hub.execute("CREATE TABLE stored AS SELECT 42 AS answer")
        secret = (data / "secret_key").read_text()
        counters = Path(hub.part("web-1").environ()["PROMETHEUS_MULTIPROC_DIR"])
    assert data not in counters.parents, "a full disk ends processes with metrics there"
    (counters / "counter_1.db").write_text("of a process that has ended")
    stale = data / "postgres" / "postmaster.pid"
    stale.write_text(f"{os.getpid()}\n{data / 'postgres'}\n1\n5432\n{data / 'run'}\n\n")
    with ExitStack() as stack:
        thread = stack.enter_context(a_thread())
        lock = data / "run" / ".s.PGSQL.5432.lock"
        lock.write_text(f"{thread}\n{data / 'postgres'}\n1\n5432\n{data / 'run'}\n")
        archive = "s3://name:password@bucket"
        hub = stack.enter_context(running(data, EVENTHUB_ARCHIVE_URL=archive))
        assert "lock file" not in hub.text
        assert hub.execute("SELECT answer FROM stored") == [(42,)]
        assert (data / "secret_key").read_text() == secret
        assert not (counters / "counter_1.db").exists()
        assert "initdb" not in hub.text
        assert "password" not in hub.text


def test_all_processes_have_the_settings_that_the_file_had_at_the_start(tmp_path: Path) -> None:
    """A restarted process has them, too, while the file is edited or unreadable for its user."""
    file = tmp_path / "eventhub.toml"
    file.write_text('quota_bytes = "10GiB"\narchive_url = "s3://name:password@bucket"\n')
    file.chmod(0o600)
    with running(tmp_path / "data", EVENTHUB_SETTINGS_FILE=str(file)) as hub:
        file.write_text("quota_bytes = ")
        ready = hub.text.count("web-1 is ready")
        hub.part("web-1").kill()
        hub.wait_line("web-1 is ready", ready + 1)
        for name in ("web-1", "web-2", "postgres"):
            env = hub.part(name).environ()
            assert env["EVENTHUB_QUOTA_BYTES"] == str(10 << 30)
            assert "EVENTHUB_SETTINGS_FILE" not in env
        assert "password" not in hub.text


def test_the_banner_exports_the_variables_that_commands_need(hub: Hub) -> None:
    assert re.search(r"export DATABASE_URL='postgresql://\S+run'\n", hub.text)
    assert f"export EVENTHUB_ARCHIVE_URL={hub.data / 'archive'}\n" in hub.text
    assert f"export EVENTHUB_DATA={hub.data}\n" in hub.text


def test_secrets_and_sockets_are_private(hub: Hub) -> None:
    secret = (hub.data / "secret_key").stat()
    assert secret.st_mode & 0o777 == 0o600
    counters = Path(hub.part("web-1").environ()["PROMETHEUS_MULTIPROC_DIR"])
    for folder in (hub.data, hub.data / "postgres", hub.data / "run", counters, counters.parent):
        assert folder.stat().st_mode & 0o777 == 0o700
    assert secret.st_uid == (hub.data / "postgres" / "PG_VERSION").stat().st_uid


def test_without_the_demo_no_zone_may_call_loopback(hub: Hub) -> None:
    assert "EVENTHUB_CALLBACK_ALLOW" not in hub.part("web-1").environ()
    assert "callbacks  " not in hub.text


def test_folder_above_the_data_is_not_touched(hub: Hub) -> None:
    above = hub.data.parent.stat()
    assert (above.st_mode & 0o777, above.st_uid, above.st_gid) == (0o700, os.getuid(), os.getgid())


def test_busy_port_is_reported_before_anything_starts(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        hub = Hub(tmp_path / "data", port=other.getsockname()[1])
        assert hub.wait_end() == 1
    assert "is in use by another program" in hub.text
    assert not (tmp_path / "data").exists()


def test_second_hub_on_the_same_data_is_refused(hub: Hub) -> None:
    second = Hub(hub.data)
    assert second.wait_end() == 1
    assert f"in use by another hub (process {hub.process.pid})" in second.text
    hub.get()


def test_removing_the_lock_file_does_not_admit_a_second_hub(hub: Hub) -> None:
    """A user may think it is stale. The second hub ended the first one's PostgreSQL, which was
    restarted, and so on."""
    lock = (hub.data / "lock").rename(hub.data.parent / "lock")
    postgres = hub.part("postgres").pid
    second = Hub(hub.data)
    try:
        assert second.wait_end() == 1
    finally:
        lock.rename(hub.data / "lock")
    assert f"another hub (process {hub.process.pid}), whose lock file was removed" in second.text
    assert hub.part("postgres").pid == postgres


def test_two_hubs_on_one_machine_do_not_disturb_each_other(hub: Hub, tmp_path: Path) -> None:
    """The path of the second is long: its sockets are in a private folder elsewhere."""
    data = tmp_path / ("long" * 20) / "data"
    with running(data) as two:
        hub.execute("CREATE TABLE only_here ()")
        assert hub.url != two.url
        found = re.search(r'listening on Unix socket "(.+?)/\.s\.PGSQL', two.text)
        assert found is not None
        sockets = Path(found.group(1))
        assert not sockets.is_relative_to(data)
        assert sockets.stat().st_mode & 0o777 == 0o700
        assert two.execute("SELECT to_regclass('only_here')::text", sockets) == [(None,)]
    assert not sockets.exists()
    hub.get()


def test_early_order_to_replace_processes_does_not_end_the_hub(tmp_path: Path) -> None:
    """In its first seconds a hub had no handler yet, and SIGUSR2 killed it without a line. When it
    has ended, its lock file is empty, so that the next order reaches no other process."""
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    with (data / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        hub = Hub(data)
        hub.wait_line("waiting for the processes of a killed hub")
        hub.process.send_signal(signal.SIGUSR2)
    try:
        hub.wait_ready()
        assert (data / "lock").read_text() == f"{hub.process.pid}\n"
    finally:
        hub.interrupt()
        hub.wait_end()
    assert (data / "lock").read_text() == ""
    (data / "format").write_text("0\n")
    assert Hub(data).wait_end() == 1
    assert (data / "lock").read_text() == ""


def test_output_with_a_limited_encoding_loses_no_line(tmp_path: Path) -> None:
    """The banner was lost because of a letter in the folder's name."""
    with running(tmp_path / "dätä", PYTHONIOENCODING="ascii") as hub:
        assert "d\\xe4t\\xe4\n" in hub.text
        assert "were lost" not in hub.text


def ignores(pid: int, number: signal.Signals) -> bool:
    [mask] = re.findall(r"^SigIgn:\s+(\w+)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return bool(int(mask, 16) >> (number - 1) & 1)


CLOSED = """
import os, signal, sys
os.close(0), os.close(2)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
os.execv(sys.executable, [sys.executable, {script!r}, *sys.argv[1:]])
"""


def test_closed_streams_and_variables_for_another_postgresql_do_not_matter(tmp_path: Path) -> None:
    """The port's socket became standard input, which every process replaces: no web process
    could serve. PGPORT moved the socket, for which the hub waited without end. A hub
    under `nohup` ended with its terminal."""
    script = tmp_path / "closed.py"
    script.write_text(CLOSED.format(script=str(STAND_IN)))
    given = {"PGPORT": "1", "PGSERVICE": "nowhere", "PGTARGETSESSIONATTRS": "read-only"}
    hub = Hub(tmp_path / "data", script=script, **given)
    try:
        hub.wait_line("EventHub is ready at")
        hub.get()
        assert ignores(hub.process.pid, signal.SIGHUP)
    finally:
        hub.interrupt()
        hub.wait_end()


def test_servers_given_by_url_are_not_started(tmp_path: Path) -> None:
    given = {name: os.environ[name] for name in ("DATABASE_URL", "REDIS_URL")}
    with running(tmp_path / "data", **given) as hub:
        assert not re.search(r"^(postgres|redis|initdb) ", hub.text, re.MULTILINE)
        assert not (tmp_path / "data" / "postgres").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root steps down")
def test_root_prints_the_user_of_the_processes_in_one_line(hub: Hub) -> None:
    notes = [line for line in hub.lines if "started as root" in line]
    assert len(notes) == 1
    hub.part("postgres")
