"""Starting: what is checked before, what is kept from the last time, what is private."""

import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.integration.up_process import Hub


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
    """One in a folder that others may not look into."""
    above = tmp_path_factory.mktemp("private")
    above.chmod(0o700)
    with running(above / "data") as hub:
        yield hub


def test_second_start_keeps_data_and_secret(tmp_path: Path) -> None:
    """What an interrupted first start left is no obstacle. Nor is a stale postmaster.pid: after a
    power loss the id in it may belong to anything that lives."""
    data = tmp_path / "data"
    (data / "postgres.new" / "base").mkdir(parents=True)
    with running(data) as hub:
        hub.execute("CREATE TABLE kept AS SELECT 42 AS answer")
        secret = (data / "secret_key").read_text()
    (data / "metrics" / "counter_1.db").write_text("of a process that has ended")
    stale = data / "postgres" / "postmaster.pid"
    stale.write_text(f"{os.getpid()}\n{data / 'postgres'}\n1\n5432\n{data / 'run'}\n\n")
    with running(data, EVENTHUB_ARCHIVE_URL="s3://name:password@bucket") as hub:
        assert hub.execute("SELECT answer FROM kept") == [(42,)]
        assert (data / "secret_key").read_text() == secret
        assert list((data / "metrics").iterdir()) == []
        assert "initdb" not in hub.text
        assert "password" not in hub.text


def test_the_banner_names_what_commands_beside_the_hub_need(hub: Hub) -> None:
    assert re.search(r"export DATABASE_URL='postgresql://\S+run'\n", hub.text)
    assert f"export EVENTHUB_ARCHIVE_URL={hub.data / 'archive'}\n" in hub.text
    assert f"export EVENTHUB_DATA={hub.data}\n" in hub.text


def test_secrets_and_sockets_are_private(hub: Hub) -> None:
    secret = (hub.data / "secret_key").stat()
    assert secret.st_mode & 0o777 == 0o600
    for name in ("", "postgres", "run", "metrics"):
        assert (hub.data / name).stat().st_mode & 0o777 == 0o700
    assert secret.st_uid == (hub.data / "postgres" / "PG_VERSION").stat().st_uid


def test_folder_above_the_data_is_not_touched(hub: Hub) -> None:
    above = hub.data.parent.stat()
    assert (above.st_mode & 0o777, above.st_uid, above.st_gid) == (0o700, os.getuid(), os.getgid())


def test_busy_port_is_said_before_anything_starts(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        hub = Hub(tmp_path / "data", port=other.getsockname()[1])
        assert hub.wait_end() == 1
    assert "is in use by another program" in hub.text
    assert not (tmp_path / "data").exists()


def test_second_hub_on_the_same_data_says_so(hub: Hub) -> None:
    second = Hub(hub.data)
    assert second.wait_end() == 1
    assert f"in use by another hub (process {hub.process.pid})" in second.text
    hub.get()


def test_two_hubs_on_one_machine_do_not_disturb_each_other(hub: Hub, tmp_path: Path) -> None:
    """The second's path is long: its sockets are in a private folder elsewhere."""
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


def test_servers_given_by_url_are_not_started(tmp_path: Path) -> None:
    given = {name: os.environ[name] for name in ("DATABASE_URL", "REDIS_URL")}
    with running(tmp_path / "data", **given) as hub:
        assert not re.search(r"^(postgres|redis|initdb) ", hub.text, re.MULTILINE)
        assert not (tmp_path / "data" / "postgres").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root steps down")
def test_root_says_in_one_line_who_runs_the_parts(hub: Hub) -> None:
    notes = [line for line in hub.lines if "started as root" in line]
    assert len(notes) == 1
    hub.part("postgres")
