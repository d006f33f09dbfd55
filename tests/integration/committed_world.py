"""A migrated database of a test's own, so that other sessions see what Django commits."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db import connections
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.databases import migrated_database


@contextmanager
def committing(name: str, blocker: Any) -> Iterator[None]:
    """Let Django use a new database within the block. `blocker`: the fixture django_db_blocker."""
    default = connections["default"]
    before = default.settings_dict["NAME"]
    with migrated_database(name) as url, blocker.unblock():
        _close(default)
        default.settings_dict["NAME"] = conninfo_to_dict(url)["dbname"]
        try:
            yield
        finally:
            _close(default)
            default.settings_dict["NAME"] = before


def _close(default: Any) -> None:
    default.close()
    default.close_pool()


def database() -> str:
    """Return the URL of the database."""
    name = connections["default"].settings_dict["NAME"]
    return make_conninfo(os.environ["DATABASE_URL"], dbname=name)


def sql(statement: str, *values: Any) -> list[tuple[Any, ...]]:
    """Return the rows of a statement, committed."""
    with psycopg.connect(database(), autocommit=True) as session:
        cursor = session.execute(statement.encode(), values)
        return cursor.fetchall() if cursor.description else []
