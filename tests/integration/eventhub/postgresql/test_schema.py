"""Every process refuses a database that another version of the hub created."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest
from django.apps import apps
from django.db.migrations.loader import MigrationLoader
from psycopg.conninfo import make_conninfo

from eventhub.base.version import VERSION
from eventhub.postgresql import schema
from eventhub.postgresql.migration_forms import MigrationForm as Form
from eventhub.postgresql.schema import MigrationName, OtherSchema
from eventhub.postgresql.schema import SchemaState as State
from tests.databases import migrate, migrated_database, new_database
from tests.forked import manage_given as manage
from tests.forked import run
from tests.integration.up_process import Hub

OTHER = "were created by another version of the hub (delivery.0001_initial"
CELERY = ("-m", "celery", "-q", "-A", "eventhub", "worker")
MIGRATION = '''
"""The tables."""
SQL = Path(__file__).parent.parent / "sql"
class Migration(migrations.Migration):
    release = "0.1"
    operations = [migrations.RunSQL((SQL / "schema.sql").read_text())]
'''


@pytest.fixture(scope="module")
def other() -> Iterator[str]:
    """Return the URL of a database whose delivery tables were created by another migration."""
    with migrated_database("other") as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("UPDATE schema_digests SET digest = 'x' WHERE app = 'delivery'")
        yield url


def environment(url: str) -> dict[str, str]:
    return {"DATABASE_URL": url, "DATABASE_DIRECT_URL": url, "EVENTHUB_SECRET_KEY": "k" * 40}


@pytest.mark.parametrize("words", [("web", "--port", "0"), ("forward",), ("createkey", "shop")])
def test_tables_of_another_version_are_refused(other: str, words: tuple[str, ...]) -> None:
    done = manage(*words, **environment(other))
    assert done.returncode == os.EX_CONFIG, done.stderr
    assert OTHER in done.stderr
    assert "Run the version that created them" in done.stderr
    assert "Traceback" not in done.stderr


def test_tables_of_another_version_are_refused_by_a_worker(other: str) -> None:
    done = celery("-P", "threads", **environment(other))
    assert done.returncode == os.EX_CONFIG, done.stderr
    assert OTHER in done.stderr


def test_tables_of_another_version_stop_up_before_it_serves(other: str) -> None:
    """A folder from before an upgrade was used as if it were of this version."""
    manage_py = Path(schema.HOME) / "manage.py"
    with TemporaryDirectory(prefix="eventhub-") as data:  # the unprivileged user can reach it
        hub = Hub(Path(data), script=manage_py, **environment(other))
        assert hub.wait_end() == 1
    assert OTHER in hub.text
    assert "boot cannot run with the hub's settings or data" in hub.text
    assert "web-1" not in hub.text


def test_empty_database_must_be_migrated_first() -> None:
    with new_database("empty") as url:
        done = manage("forward", **environment(url))
    assert done.returncode == os.EX_CONFIG
    assert "Run `manage.py migrate`" in done.stderr


def test_error_of_the_database_server_is_reported() -> None:
    """For a wrong name or password each attempt printed a hundred lines of Python, and the
    reason in none of them."""
    with new_database("there") as url:
        away = make_conninfo(url, dbname="nowhere")
        done = manage("boot", "--migrate", **environment(away))
    assert done.returncode == 1
    assert 'database "nowhere" does not exist' in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr


def test_database_that_refuses_access_does_not_count_as_unavailable() -> None:
    """The process started, and retried each second without a log line."""
    with migrated_database("closed") as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("DROP ROLE IF EXISTS stranger")
            connection.execute("CREATE ROLE stranger LOGIN")
        done = manage("forward", **environment(make_conninfo(url, user="stranger")))
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "permission denied for table" in line


def test_migrations_without_recorded_digests_are_of_another_version() -> None:
    ours = schema.migrations()
    with migrated_database("before") as url, psycopg.connect(url) as connection:
        cursor = connection.cursor()
        schema.require_complete(schema.read(cursor, ours), ours)
        cursor.execute("DROP TABLE schema_digests")
        with pytest.raises(OtherSchema):
            schema.require_same(schema.read(cursor, ours), ours)


@pytest.mark.parametrize(
    ("app", "name", "says"),
    [
        (
            "delivery",
            "0002_more",
            "were created by a newer version of the hub (delivery.0002",
        ),
        ("eventlog", "0001_log", "are from before 0.1 (eventlog.0001_log)"),
    ],
)
def test_a_database_of_another_release_is_refused(app: str, name: str, says: str) -> None:
    with migrated_database("release") as url:
        with psycopg.connect(url) as connection:
            connection.execute(
                "INSERT INTO django_migrations (app, name, applied) VALUES (%s, %s, now())",
                (app, name),
            )
        for words in (("migrate",), ("boot", "--migrate"), ("web", "--port", "0")):
            done = manage(*words, **environment(url))
            assert done.returncode == os.EX_CONFIG, done.stderr
            assert says in done.stderr
            assert "Nothing was changed" in done.stderr


def test_a_half_migrated_database_is_refused_until_it_is_migrated() -> None:
    with migrated_database("half") as url:
        migrate(url, "delivery", "zero")
        for words in (("web", "--port", "0"), ("forward",)):
            done = manage(*words, **environment(url))
            assert done.returncode == os.EX_CONFIG
            assert "lacks tables of this version (delivery.0001_initial" in done.stderr
        migrate(url)
        with psycopg.connect(url) as connection:
            ours = schema.migrations()
            schema.require_complete(schema.read(connection.cursor(), ours), ours)


def test_the_first_half_is_applied_once() -> None:
    """Each app was migrated again, which took seconds."""
    with migrated_database("first_half") as url:
        migrate(url, "jobs", "zero")
        for says in ("Applying jobs.0001_initial", "The first half of this release is applied"):
            done = manage("migrate", "--pre", **environment(url))
            assert done.returncode == 0, done.stderr
            assert says in done.stdout
            assert done.stdout.count("Target specific migration") == says.count("jobs")


def test_there_is_nothing_before_the_first_release() -> None:
    with migrated_database("first") as url:
        done = manage("migrate", "--back", "all", **environment(url))
        assert done.returncode == 1
        assert "is the first release; none precedes it" in done.stderr
        done = manage("migrate", "--pre", "--back", "all", **environment(url))
        assert "not allowed with argument" in done.stderr


ONE, TWO = MigrationName("log", "0001_log"), MigrationName("log", "0003_more")
LATE = MigrationName("log", "0002_late")
A, B, POST = (
    Form("a", "0.1"),
    Form("b", "0.1"),
    Form("c", VERSION, "post"),
)


@pytest.mark.parametrize(
    ("found", "same", "complete"),
    [
        (State({ONE, LATE}, {ONE: A, LATE: POST}), True, True),
        (State({ONE}, {ONE: A}), True, True),  # before the second half
        (
            State({ONE, LATE, TWO}, {ONE: A, LATE: POST, TWO: Form("c", "0.2")}),
            True,
            True,
        ),
        (
            State({ONE, LATE, TWO}, {ONE: A, LATE: POST, TWO: Form("c", "0.3")}),
            False,
            False,
        ),
        (
            State({ONE, LATE, TWO}, {ONE: A, LATE: POST, TWO: Form("c", "0.2", "post")}),
            False,
            False,
        ),
        (State(set(), {}), True, False),
        (State({LATE}, {LATE: POST}), True, False),
        (
            State(set(), {ONE: B}),
            True,
            False,
        ),  # recorded by a run that ended before it applied it
        (State({ONE}, {ONE: B}), False, False),
        (State({ONE}, {}), False, False),
        (State({ONE, TWO}, {ONE: A}), False, False),
    ],
)
def test_state_of_a_database_is_compared_with_this_version(
    found: State, same: bool, complete: bool
) -> None:
    ours = {ONE: A, LATE: POST}
    for passes, require in ((same, schema.require_same), (complete, schema.require_complete)):
        if passes:
            require(found, ours)
        else:
            with pytest.raises(OtherSchema):
                require(found, ours)


def test_every_migration_of_the_hubs_own_apps_has_a_digest() -> None:
    home = str(schema.HOME)
    own = {app.label for app in apps.get_app_configs() if app.path.startswith(home)}
    own = {label for label in own if ".venv" not in apps.get_app_config(label).path}
    disk = MigrationLoader(None).disk_migrations
    assert set(schema.migrations()) == {MigrationName(*key) for key in disk if key[0] in own}


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("CREATE TABLE t (a int);\n", "CREATE TABLE t (a int);\r\n", True),
        ("CREATE TABLE t (a int);", "-- it's a table\nCREATE  TABLE t\n  (a /* one */ int);", True),
        ("CREATE TABLE t (a int);", "CREATE TABLE t (a bigint);", False),
        ("SELECT 'a -- b';", "SELECT 'a -- c';", False),
        ("SELECT $$ SELECT 1 $$;", "SELECT $$\n  SELECT 1 -- one\n$$;", True),
    ],
)
def test_digest_is_of_the_statements_not_of_their_layout(
    tmp_path: Path, before: str, after: str, same: bool
) -> None:
    found = []
    for number, (text, code) in enumerate(((before, MIGRATION), (after, f"# new\n{MIGRATION}"))):
        app = tmp_path / str(number) / "delivery"
        (app / "migrations").mkdir(parents=True)
        (app / "sql").mkdir()
        (app / "sql" / "schema.sql").write_bytes(text.encode())
        (app / "migrations" / "0001_delivery.py").write_text(code)
        found.append(schema.migrations(app.parent)[MigrationName("delivery", "0001_delivery")])
    assert (found[0] == found[1]) is same


@pytest.mark.parametrize(("line", "same"), [("# a comment", True), ("CHANGED = 1", False)])
def test_a_migration_changed_after_its_form_was_stored_is_read_again(
    tmp_path: Path, line: str, same: bool
) -> None:
    name = MigrationName("access", "0001_initial")
    folder = tmp_path / "eventhub" / "access" / "migrations"
    folder.mkdir(parents=True)
    source = schema.HOME / "eventhub" / "access" / "migrations" / "0001_initial.py"
    (folder / source.name).write_text(f"{source.read_text()}\n{line}\n")
    assert (schema.migrations(tmp_path)[name] == schema.migrations()[name]) is same


@pytest.mark.parametrize("words", ["-P prefork", "--pool=prefork", "-P solo", "-c 2"])
def test_worker_in_another_pool_or_with_too_few_threads_is_refused(words: str) -> None:
    """The worker ran in a pool of processes, without a message, with a forked drain."""
    done = celery(*words.split())
    assert done.returncode == os.EX_CONFIG
    assert "Leave out -" in done.stderr
    assert "celery -A eventhub worker" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("-B", "Leave out -B"),  # it was a second timetable
        (
            "-Q jobs,nosuch",
            "The hub has no queue nosuch. Leave out -Q, or name queues of",
        ),
        ("--autoscale 10,1", "Leave out --autoscale"),  # the least may be below what -c may
    ],
)
def test_worker_with_an_option_that_would_break_it_is_refused(words: str, said: str) -> None:
    """Before it needs anything else, and leaving no file."""
    done = celery(*words.split())
    assert done.returncode == os.EX_CONFIG, done.stderr
    assert said in done.stderr
    assert not list(Path.cwd().glob("celerybeat*"))


def celery(*words: str, **given: str) -> subprocess.CompletedProcess[str]:
    return run([sys.executable, *CELERY, *words], {**os.environ, "REDIS_URL": "", **given})
