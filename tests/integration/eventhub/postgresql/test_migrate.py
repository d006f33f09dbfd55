"""`manage.py migrate` leaves a whole database or the one before, however it ends, and says what it
waits for.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from eventhub.base import limits
from eventhub.postgresql import schema
from tests.databases import migrated_database, new_database
from tests.forked import Started, run
from tests.forked import manage_given as manage
from tests.integration.eventhub.postgresql.test_models import described
from tests.integration.eventhub.postgresql.test_schema import environment
from tests.integration.up_process import wait_until

KILLED = Path(__file__).with_name("killed_migrate.py")


@pytest.fixture(scope="module")
def whole() -> Iterator[dict[str, set[tuple[object, ...]]]]:
    with migrated_database("whole") as url:
        yield described(url)


def killed_at(url: str, app: str, method: str, *words: str) -> None:
    argv = [sys.executable, str(KILLED), app, "0001_initial", method, *words]
    done = run(argv, {**os.environ, **environment(url)})
    assert done.returncode == 128 + signal.SIGKILL, done.stderr


def test_a_migration_that_is_killed_before_it_is_recorded_is_applied_again(
    whole: dict[str, set[tuple[object, ...]]],
) -> None:
    """Its tables existed without a record, and no further migration was possible."""
    with new_database("killed") as url:
        for app in ("eventlog", "delivery"):
            killed_at(url, app, "record_applied")
        done = manage("migrate", **environment(url))
        assert done.returncode == 0, done.stderr
        assert described(url) == whole
        killed_at(url, "jobs", "record_unapplied", "jobs", "zero")
        for words in (("migrate", "jobs", "zero"), ("migrate",)):
            done = manage(*words, **environment(url))
            assert done.returncode == 0, done.stderr
        assert described(url) == whole


def test_leftovers_of_a_killed_first_migrate_do_not_count_as_foreign() -> None:
    with new_database("begun") as url:
        with psycopg.connect(url) as connection:
            connection.execute(schema._CREATE.encode())
        assert manage("migrate", "--plan", **environment(url)).returncode == 0


def test_the_first_migrate_may_be_run_twice_at_once(
    whole: dict[str, set[tuple[object, ...]]],
    tmp_path: Path,
) -> None:
    with new_database("twice") as url, psycopg.connect(url, autocommit=True) as holder:
        holder.execute("SELECT pg_advisory_lock(%s)", [schema.LOCK])
        argv = [sys.executable, str(schema.HOME / "manage.py"), "migrate"]
        outputs = [tmp_path / "one", tmp_path / "other"]
        both = []
        for file in outputs:
            with file.open("wb") as output:
                both.append(Started(argv, {**os.environ, **environment(url)}, output))
        waits = "Another process migrates this database"
        wait_until(lambda: all(waits in file.read_text() for file in outputs), waits)
        holder.execute("SELECT pg_advisory_unlock(%s)", [schema.LOCK])
        for one, file in zip(both, outputs, strict=True):
            assert one.wait(60) == 0, file.read_text()
        assert described(url) == whole


def test_nothing_is_reverted_in_an_empty_database() -> None:
    with new_database("back") as url:
        done = manage("migrate", "--back", "all", **environment(url))
        assert (done.returncode, done.stderr) == (0, "")
        assert "there is nothing to revert" in done.stdout
        assert {row[0] for row in described(url)["table"]} <= {"schema_digests"}


def test_an_unavailable_server_is_reported_in_one_line() -> None:
    with new_database("there") as url:
        away = make_conninfo(url, dbname="nowhere")
        done = manage("migrate", **environment(away))
    assert done.returncode == 1
    assert 'database "nowhere" does not exist' in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr


@pytest.mark.parametrize("foreign", ["TABLE streams (id int)", "VIEW streams AS SELECT 1 AS id"])
def test_a_database_with_foreign_tables_is_refused_with_their_names(foreign: str) -> None:
    with new_database("else") as url:
        with psycopg.connect(url) as connection:
            connection.execute(f"CREATE {foreign}".encode())
        for words in (("migrate",), ("boot",)):
            done = manage(*words, **environment(url))
            assert done.returncode == os.EX_CONFIG, done.stderr
            assert "tables that are not a hub's (streams)" in done.stderr
            assert "Give the hub an empty database of its own" in done.stderr


def test_holders_of_a_table_lock_are_named_while_migrate_waits() -> None:
    with (
        migrated_database("held") as url,
        psycopg.connect(url, application_name="a report") as holder,
    ):
        holder.execute("SELECT count(*) FROM job_runs")
        holder.execute(f"SELECT pg_sleep({2 * limits.MIGRATE_LOCK_MS_MAX / 1_000})".encode())
        process = subprocess.Popen(
            [sys.executable, "manage.py", "migrate", "jobs", "zero"],
            cwd=schema.HOME,
            env={**os.environ, **environment(url)},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        waits = next(line for line in process.stdout if "in use" in line)
        assert f"a report (pid {holder.info.backend_pid})" in waits
        holder.rollback()
        process.communicate(timeout=60)
        assert process.returncode == 0
