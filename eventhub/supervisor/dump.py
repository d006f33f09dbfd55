"""Dumps of the hub's database, written and restored by PostgreSQL's own programs. SQL module.

The server of `url` needs to grant no more than the rights of the database's owner. The programs of
the wheel cannot dump a server that is newer than they are.
"""

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from eventhub.postgresql import schema
from eventhub.postgresql.migration_forms import MigrationForm
from eventhub.postgresql.rows import scalars
from eventhub.postgresql.schema import MigrationName, OtherSchema, SchemaState
from eventhub.supervisor import programs

_CLEAR = b"BEGIN; DROP SCHEMA public CASCADE; CREATE SCHEMA public;\n"
_OTHERS = """
SELECT DISTINCT application_name FROM pg_stat_activity
 WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""
# in a dump as pg_restore prints it: a table's name and columns, then its rows
_COPY = re.compile(
    r"^COPY public\.(\w+) \((.*?)\) FROM stdin;\n(.*?)^\\\.$", re.DOTALL | re.MULTILINE
)


class DumpFailed(Exception):
    """A dump could not be written or restored; nothing was changed. The message says why."""


def write(url: str, file: Path) -> None:
    """Dump a hub's database into a new file, compressed, as of one moment. Raises DumpFailed."""
    if file.exists():
        raise DumpFailed(f"{file} already exists; choose another name.")
    unfinished = file.with_name(f"{file.name}.new")
    try:
        with unfinished.open("wb") as out:
            os.fchmod(out.fileno(), 0o600)
            _run(url, "pg_dump", "--format=custom", "--no-owner", "--no-privileges", out=out)
            out.flush()
            os.fsync(out.fileno())
        if not _read(unfinished).applied:
            raise DumpFailed("This database has no tables of a hub; no dump was written.")
        unfinished.rename(file)
    except OSError as error:
        raise DumpFailed(f"{file} cannot be written: {error.strerror}") from error
    finally:
        unfinished.unlink(missing_ok=True)


def restore(url: str, file: Path) -> None:
    """Replace the whole database by the dump, in one transaction. Raises DumpFailed: also while
    other sessions are connected, for a dump that is not from a hub of this version, and for a
    database with other tables than a hub's.
    """
    if not file.is_file():
        raise DumpFailed(f"{file} does not exist.")
    ours = schema.migrations()
    _require_restorable(file, ours)
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            cursor = connection.cursor()
            schema.require_hub_tables(cursor, schema.read(cursor, ours))
            others = [name or "unnamed" for name in scalars(connection).execute(_OTHERS)]
    except psycopg.Error as error:
        raise DumpFailed(f"The database cannot be reached: {error}") from error
    except OtherSchema as error:
        raise DumpFailed(str(error)) from error
    if others:
        raise DumpFailed(
            f"The database is in use ({', '.join(sorted(others))}); stop the hub first."
        )
    _replace(url, file)


def _require_restorable(file: Path, ours: Mapping[MigrationName, MigrationForm]) -> None:
    found = _read(file)
    if not found.applied:
        raise DumpFailed(f"{file} is not a dump of a hub's database; nothing was changed.")
    try:
        schema.require_same(found, ours)
    except OtherSchema as error:
        raise DumpFailed(
            f"{file} was written by another version of the hub; nothing was changed. Restore it "
            "with the version that wrote it."
        ) from error


def _read(file: Path) -> SchemaState:
    """Read the migrations of a dump, as `schema.read` does of a database."""
    names = ("django_migrations", "schema_digests")
    done = subprocess.run(  # noqa: S603 - a program of the wheel
        [str(programs.postgres("pg_restore")), "--data-only", "--file=-"]
        + [f"--table={name}" for name in names]
        + [str(file)],
        capture_output=True,
        check=False,
    )
    if done.returncode:
        why = done.stderr.decode(errors="replace").strip()
        raise DumpFailed(f"{file} cannot be read, nothing was changed: {why}")
    rows = {name: list(_rows(name, done.stdout.decode(errors="replace"))) for name in names}
    apps = {migration.app for migration in schema.migrations()}
    applied = {MigrationName(row["app"], row["name"]) for row in rows["django_migrations"]}
    forms = {
        MigrationName(row["app"], row["name"]): MigrationForm(
            row["digest"], row["release"], row["half"]
        )
        for row in rows["schema_digests"]
    }
    return SchemaState({one for one in applied if one.app in apps}, forms)


def _rows(table: str, text: str) -> Iterator[dict[str, str]]:
    for name, columns, lines in _COPY.findall(text):
        if name == table:
            for line in lines.splitlines():
                yield dict(zip(columns.split(", "), line.split("\t"), strict=True))


def _replace(url: str, file: Path) -> None:
    """Replace the database; the commit is sent only after the whole dump."""
    words = ("--quiet", "--no-psqlrc", "--set=ON_ERROR_STOP=1", "--output=/dev/null")
    target, env = _target(url)
    into, out = os.pipe()
    with subprocess.Popen(  # noqa: S603 - a program of the wheel
        [str(programs.postgres("psql")), *words, "--dbname", target],
        stdin=into,
        stderr=subprocess.PIPE,
        env={**env, "PGOPTIONS": "-c client_min_messages=warning"},
    ) as psql:
        os.close(into)
        with suppress(BrokenPipeError):
            os.write(out, _CLEAR)
        read = subprocess.run(  # noqa: S603 - a program of the wheel
            [str(programs.postgres("pg_restore")), "--no-owner", "--file=-", str(file)],
            stdout=out,
            stderr=subprocess.PIPE,
            check=False,
        )
        with suppress(BrokenPipeError):
            os.write(out, b"COMMIT;\n" if read.returncode == 0 else b"")
        os.close(out)
        _, errors = psql.communicate()
    if read.returncode or psql.returncode:
        why = (errors if psql.returncode else read.stderr).decode(errors="replace").strip()
        raise DumpFailed(f"{file} was not restored, nothing was changed: {why}")


def _run(url: str, name: str, *words: str, out: object) -> None:
    target, env = _target(url)
    done = subprocess.run(  # noqa: S603 - a program of the wheel
        [str(programs.postgres(name)), *words, "--dbname", target],
        stdout=out,  # type: ignore[call-overload]
        stderr=subprocess.PIPE,
        env=env,
        check=False,
    )
    if done.returncode:
        raise DumpFailed(f"{name} failed: {done.stderr.decode(errors='replace').strip()}")


def _target(url: str) -> tuple[str, Mapping[str, str]]:
    """Return the URL without its password, which other users could read among a command's
    arguments, and an environment with the password.
    """
    parts = conninfo_to_dict(url)
    password = parts.pop("password", None)
    env = dict(os.environ)
    if password:
        env["PGPASSWORD"] = str(password)
    return make_conninfo("", **parts), env
