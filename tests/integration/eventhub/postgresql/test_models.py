"""Models, migrations and SQL statements agree."""

import ast
import json
import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.apps import apps
from django.db import models
from django.db.utils import ConnectionHandler
from psycopg.conninfo import conninfo_to_dict
from pytest_django import DjangoDbBlocker

from delivery import lane_marks
from eventhub.eventlog import streams
from eventhub.postgresql import queries
from eventhub.postgresql.schema import HOME
from eventhub.postgresql.tables import TableStorage, create_table
from registrations.endpoints import statements as statements_of_endpoints
from tests.chaos.outages import clock
from tests.databases import migrated_database, new_database
from tests.forked import manage_given as manage
from tests.forked import run

FOLDERS = ("eventhub", "registrations", "delivery", "sparkjobs")
LABELS = (
    *("access", "eventlog", "types", "applications", "monitoring", "hub_sessions", "registrations"),
    *("timers", "sources", "connectors", "hub_patterns", "delivery", "jobs"),
)
PARTS = {
    "table": """
        SELECT c.relname, c.relpersistence, ARRAY(SELECT unnest(c.reloptions) ORDER BY 1),
               pg_get_partkeydef(c.oid), obj_description(c.oid)
          FROM pg_class c WHERE c.relkind IN ('r', 'p')""",
    "column": """
        SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
               a.attidentity, a.attstorage, pg_get_expr(d.adbin, d.adrelid),
               col_description(c.oid, a.attnum)
          FROM pg_class c JOIN pg_attribute a ON c.oid = a.attrelid
          LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
         WHERE c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped""",
    "constraint": """
        SELECT c.relname, k.conname, pg_get_constraintdef(k.oid)
          FROM pg_class c JOIN pg_constraint k ON c.oid = k.conrelid WHERE true""",
    "sequence": """
        SELECT c.relname, a.attname, s.seqtypid::regtype, s.seqstart, s.seqincrement, s.seqmin,
               s.seqmax, s.seqcycle
          FROM pg_sequence s
          JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = s.seqrelid
                          AND d.refclassid = 'pg_class'::regclass AND d.refobjsubid > 0
          JOIN pg_class c ON c.oid = d.refobjid
          JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = d.refobjsubid WHERE true""",
    "index": """
        SELECT c.relname, i.relname, pg_get_indexdef(i.oid)
          FROM pg_class c JOIN pg_index x ON c.oid = x.indrelid
          JOIN pg_class i ON i.oid = x.indexrelid WHERE true""",
}
BACK_AND_FORTH = Path(__file__).with_name("back_and_forth.py")
OURS = " AND c.relnamespace = 'public'::regnamespace AND NOT c.relispartition"


def described(url: str) -> dict[str, set[tuple[Any, ...]]]:
    """Return the tables, columns, constraints and indexes of a database, from its catalogue."""
    with psycopg.connect(url) as connection:
        return {
            part: {tuple(map(str, row)) for row in connection.execute((query + OURS).encode())}
            for part, query in PARTS.items()
        }


@pytest.fixture(scope="module")
def migrated() -> Iterator[str]:
    with migrated_database("models") as url:
        yield url


def test_a_migrated_database_has_the_tables_of_the_models_and_no_others(
    migrated: str, django_db_blocker: DjangoDbBlocker
) -> None:
    """The tables are created from the models again, without migrations."""
    with new_database("of_models") as url:
        made = [model for label in LABELS for model in apps.get_app_config(label).get_models()]
        with django_db_blocker.unblock():
            make_tables(url, made)
        expected = described(url)
    found = described(migrated)
    tables = {model._meta.db_table for model in made}
    others = {row[0] for row in found["table"]} - tables
    assert {name for name in others if not name.startswith(("auth_", "django_"))} == {
        "schema_digests"
    }
    of_sql = {"operator_sessions"}  # an index of a table of Django's
    for part, rows in expected.items():
        own = {row for row in found[part] if row[0] in tables and row[1] not in of_sql}
        assert sorted(own - rows) == [], f"{part}s that no model defines"
        assert sorted(rows - own) == [], f"{part}s that no migration creates"


def make_tables(url: str, made: list[type[models.Model]]) -> None:
    parts = conninfo_to_dict(url)
    own = {key.upper(): str(parts.get(key, "")) for key in ("user", "password", "host", "port")}
    settings = {"ENGINE": "eventhub.postgresql", "NAME": str(parts["dbname"]), **own}
    connection = ConnectionHandler({"default": settings})["default"]
    try:
        with connection.schema_editor() as editor:
            for model in made:
                create_table(editor, model, getattr(model, "storage", TableStorage()))
    finally:
        connection.close()


def test_no_model_was_changed_without_a_migration(migrated: str) -> None:
    """`makemigrations --check` prints the migration that it would write."""
    done = manage("makemigrations", "--check", "--dry-run", DATABASE_URL=migrated)
    assert done.returncode == 0, done.stdout + done.stderr


def test_migrations_of_every_app_can_be_reverted_and_applied_again(migrated: str) -> None:
    """Each leaves nothing behind: no table, partition, sequence or function. All but two apps are
    reverted with `access`, which they need.
    """
    before = described(migrated)
    env = {**os.environ, "DATABASE_URL": migrated, "DATABASE_DIRECT_URL": migrated}
    done = run([sys.executable, str(BACK_AND_FORTH), *LABELS], env)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {label: [] for label in LABELS}
    assert described(migrated) == before


UTILITY = ("DO", "LOCK", "RELEASE", "ROLLBACK", "SAVEPOINT", "SET")  # cannot be prepared
# what is filled in before a statement is sent; everything else is a value
FILLED = {
    "chosen": "SELECT 1::bigint",
    "asked": "SELECT 1::bigint",
    "needed": "SELECT 1::bigint, 1::bigint",
    "moment": "SELECT 1",
    "event_partitions": "SELECT 1, true, true, 1, 1, 1, 1",
    **streams.FILLED,
    **lane_marks.FILLED,
    **statements_of_endpoints.FILLED,
}
FILLED_FILES = {
    "eventhub/eventlog/sql/streams.sql": None,
    "sparkjobs/runs/sql/export.sql": None,  # all of it
    "eventhub/eventlog/sql/archive.sql": {"partition_of", "page"},
    "delivery/sql/callbacks.sql": {"scan_parallel", "scan_lanes"},
    "delivery/sql/forward.sql": {"write", "write_gap", "expand"},
    "delivery/sql/recovery.sql": {"resend"},
    "delivery/sql/replay.sql": {"insert", "resend"},
    "registrations/sql/endpoints.sql": {"claim_verifications", "disable", "end_subscriptions"},
}
LOADED = {
    "delivery/sql/leases.sql": {"table": "pattern_leases", "key": "group_id"},
    "delivery/sql/sessions.sql": {"sessions": "SELECT 1::bigint AS id"},
    "registrations/sql/catalog.sql": {"groups": "ARRAY[1::bigint]"},
    "registrations/sql/stream_registrations.sql": {
        "owned": "SELECT 1::bigint AS registration_id",
        "ids": "ARRAY[1::bigint]",
        "groups": "ARRAY[1::bigint]",
    },
}
_SECONDS = re.compile(r"secs => %\((\w+)\)s|%\((\w+_s)\)s(?!::)")
_STATEMENT = re.compile(r"\s*(SELECT|INSERT INTO|UPDATE|DELETE FROM|WITH)\s")
_COMPOSED = re.compile(r"\{\w*\}|bench_|kept_")  # to be filled in, or of a table of a fault run
_PARAMETER = re.compile(r"%(?:\((\w+)\)[sbt]|[sbt])")


def statements() -> dict[str, str]:
    """Yield every named statement that can be prepared, by file and name."""
    files = sorted(file for folder in FOLDERS for file in (HOME / folder).rglob("*.sql"))
    found = {}
    for file in files:
        place = str(file.relative_to(HOME))
        for name, text in queries.load(str(file), LOADED.get(place)).items():
            if not text.startswith(UTILITY):
                found[f"{place} {name}"] = filled(place, name, text)
    return found


def statements_of_modules() -> dict[str, str]:
    """Return every statement that is a literal in a module, by file and line; those of benchmarks
    and chaos programs too, which the suite runs only in part.
    """
    folders = (*FOLDERS, "tests/benchmarks", "tests/chaos")
    files = sorted(file for folder in folders for file in (HOME / folder).rglob("*.py"))
    return {
        f"{file.relative_to(HOME)}:{line}": text
        for file in files
        if "migrations" not in file.parts
        for line, text in literals(ast.parse(file.read_text()))
        if _STATEMENT.match(text) and not _COMPOSED.search(text)
    }


def literals(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line and text of every string that is no part of another string."""
    composed = {
        part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in composed:
            yield node.lineno, node.value


def filled(place: str, name: str, text: str) -> str:
    names = FILLED_FILES.get(place, set())
    if names is not None and name not in names:
        return text
    values: dict[str, str] = defaultdict(lambda: "NULL", FILLED)
    values["partition"] = name if name in ("attempts", "deliveries", "listeners") else "events"
    return text.format_map(values)


def test_every_named_statement_is_understood_by_the_database(migrated: str) -> None:
    """After a table or column is renamed, added or dropped, every statement that names it must
    follow.
    """
    with psycopg.connect(migrated, autocommit=True) as connection:
        answers = {name: refusal(connection, text) for name, text in statements().items()}
    assert {name: why for name, why in answers.items() if why} == {}
    assert len(answers) > 300


def test_every_statement_in_a_module_is_understood_by_the_database(migrated: str) -> None:
    with psycopg.connect(migrated, autocommit=True) as connection:
        connection.execute(clock.SCHEMA)  # which some fault runs add
        answers = {
            name: refusal(connection, text) for name, text in statements_of_modules().items()
        }
        connection.execute("DROP SCHEMA test_clock CASCADE")
    assert {name: why for name, why in answers.items() if why} == {}
    assert len(answers) >= 80


def refusal(connection: psycopg.Connection[Any], text: str) -> str | None:
    """Return PostgreSQL's error for a statement."""
    try:
        columns(connection, text)
    except psycopg.Error as error:
        return str(error)
    return None


def columns(connection: psycopg.Connection[Any], text: str) -> list[str]:
    """Return the columns of a statement's result, whose parameters PostgreSQL finds the
    types of. Raises psycopg.Error.
    """
    places: dict[str, int] = {}

    def numbered(found: re.Match[str]) -> str:
        name = found[1] or str(len(places))
        return f"${places.setdefault(name, len(places) + 1)}"

    seconds = {name for names in _SECONDS.findall(text) for name in names}
    text = _PARAMETER.sub(numbered, text).replace("%%", "%")
    types = ["double precision" if name in seconds else "unknown" for name in places]
    while True:
        declared = f"({', '.join(types)})" if types else ""
        try:
            connection.execute(f"PREPARE tried {declared} AS {text}".encode())
        except psycopg.errors.IndeterminateDatatype as error:  # it is only shown or counted
            place = re.search(r"parameter \$(\d+)", str(error))
            if place is None or types[int(place[1]) - 1] != "unknown":
                raise
            types[int(place[1]) - 1] = "text"
        else:
            found = connection.pgconn.describe_prepared(b"tried")
            connection.execute("DEALLOCATE tried")
            return [(found.fname(at) or b"").decode() for at in range(found.nfields)]
