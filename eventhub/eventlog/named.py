"""Rows of a statement, mapped by the names of its columns. Sql module."""

from collections.abc import Callable
from typing import Any, LiteralString, TypeVar

import psycopg
from psycopg.rows import kwargs_row

T = TypeVar("T")


def rows(
    connection: psycopg.Connection[Any],
    kind: Callable[..., T],
    query: LiteralString,
    values: Any = None,
) -> list[T]:
    """Each row as `kind(**columns)`."""
    return connection.cursor(row_factory=kwargs_row(kind)).execute(query, values).fetchall()
