"""Databases for tests on the server of DATABASE_URL, dropped at the end of a `with`.

A migrated one is a copy of a template, which the server has from the beginning (tests/prepared.py),
or each process makes once: migrations take seconds, a copy some hundredths.
"""

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import LiteralString

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.forked import manage

MIGRATED = "migrated"  # the template of a server that was prepared
_kept = ExitStack()  # the template
# sessions that wait for a lock in this database; pg_locks has those of all databases
WAITING: LiteralString = (
    "SELECT pid FROM pg_stat_activity"
    " WHERE datname = current_database() AND wait_event_type = 'Lock'"
)


@contextmanager
def new_database(prefix: str, template: str = "template1") -> Iterator[str]:
    """Yield the URL of a copy of a template. Its files are copied: writing all pages to the log, as
    is usual, takes five times as long.
    """
    server = os.environ["DATABASE_URL"]
    name = f"{prefix}_{secrets.token_hex(4)}"
    copy = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY")
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(copy.format(sql.Identifier(name), sql.Identifier(template)))
        try:
            yield make_conninfo(server, dbname=name)
        finally:
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@contextmanager
def migrated_database(prefix: str) -> Iterator[str]:
    """Yield the URL of a new database as `manage.py migrate` leaves it."""
    with new_database(prefix, migrated_template()) as url:
        yield url


def migrated_template() -> str:
    """Return the name of the template of migrated databases."""
    return MIGRATED if _is_prepared() else copied_once("template1", migrate)


@cache
def _is_prepared() -> bool:
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        query = "SELECT 1 FROM pg_database WHERE datname = %s"
        return bool(connection.execute(query, [MIGRATED]).fetchone())


@cache
def copied_once(template: str, fill: Callable[[str], None]) -> str:
    """Return the name of a template: a copy of another, filled once by a function of its URL."""
    url = _kept.enter_context(new_database("template", template))
    fill(url)
    return str(conninfo_to_dict(url)["dbname"])


def migrate(url: str, *words: str) -> None:
    """Run `manage.py migrate WORDS` on a database."""
    env = {**os.environ, "DATABASE_URL": url, "DATABASE_DIRECT_URL": url}
    quietly = ("--no-input", "--skip-checks", "-v", "0")  # checks load every route
    done = manage(env, "migrate", *words, *quietly)
    assert done.returncode == 0, done.stdout + done.stderr


def drop_template() -> None:
    """Drop the template at the end of the process's tests, while the server runs."""
    _kept.close()
    copied_once.cache_clear()
    _is_prepared.cache_clear()
