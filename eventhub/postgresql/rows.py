"""Rows as NamedTuples, by the names of their columns, or as single values. SQL module.

`cursor_of(connection, Kind).execute(statement, values)` returns rows as `Kind`, and
`scalars(connection).execute(statement, values)` the values of a statement's only column;
`fetch_all` and the others do so at once. Names are compared once per result, and a result whose
columns differ from the fields is refused; the order of the columns does not matter. A row then
costs one call in C, and with `tuples_of` nothing.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from operator import itemgetter
from typing import Any, LiteralString, TypeVar, overload

import psycopg
from psycopg.abc import Params
from psycopg.rows import BaseRowFactory, RowMaker, no_result
from psycopg.sql import Composed

Kind = TypeVar("Kind", bound=tuple[Any, ...])
Statement = LiteralString | Composed


@overload
def cursor_of(connection: psycopg.Connection[Any], kind: type[Kind]) -> psycopg.Cursor[Kind]: ...
@overload
def cursor_of(
    connection: psycopg.AsyncConnection[Any], kind: type[Kind]
) -> psycopg.AsyncCursor[Kind]: ...
def cursor_of(connection: Any, kind: type[Kind]) -> Any:
    """Return a cursor whose rows are NamedTuples of type `kind`.

    Its `execute` raises TypeError for a statement whose columns differ from the fields.
    """
    return connection.cursor(row_factory=named(kind))


@overload
def tuples_of(
    connection: psycopg.Connection[Any], kind: type[tuple[Any, ...]]
) -> psycopg.Cursor[tuple[Any, ...]]: ...
@overload
def tuples_of(
    connection: psycopg.AsyncConnection[Any], kind: type[tuple[Any, ...]]
) -> psycopg.AsyncCursor[tuple[Any, ...]]: ...
def tuples_of(connection: Any, kind: type[tuple[Any, ...]]) -> Any:
    """Return a cursor whose rows are plain tuples in the order of a NamedTuple's fields, for a loop
    over many rows that unpacks each at once.

    Its `execute` raises TypeError for a statement whose columns are not the fields in their order.
    """
    return connection.cursor(row_factory=in_order(kind))


@overload
def scalars(connection: psycopg.Connection[Any]) -> psycopg.Cursor[Any]: ...
@overload
def scalars(connection: psycopg.AsyncConnection[Any]) -> psycopg.AsyncCursor[Any]: ...
def scalars(connection: Any) -> Any:
    """Return a cursor whose rows are the values of the only column; `fetchone` is None for a null
    and for no row. Its `execute` raises TypeError for a statement that has more columns.
    """
    return connection.cursor(row_factory=_scalar)


async def fetch_all(
    connection: psycopg.AsyncConnection[Any],
    kind: type[Kind],
    statement: Statement,
    values: Params | None = None,
    *,
    binary: bool = False,
) -> list[Kind]:
    """Return all rows of a statement as `kind`."""
    query = cursor_of(connection, kind)
    return await (await query.execute(statement, values, binary=binary)).fetchall()


async def fetch_one(
    connection: psycopg.AsyncConnection[Any],
    kind: type[Kind],
    statement: Statement,
    values: Params | None = None,
) -> Kind | None:
    """Return the first row of a statement as `kind`; None if it has no rows."""
    return await (await cursor_of(connection, kind).execute(statement, values)).fetchone()


async def fetch_values(
    connection: psycopg.AsyncConnection[Any], statement: Statement, values: Params | None = None
) -> list[Any]:
    """Return the values of a statement's only column."""
    return await (await scalars(connection).execute(statement, values)).fetchall()


async def fetch_value(
    connection: psycopg.AsyncConnection[Any], statement: Statement, values: Params | None = None
) -> Any:
    """Return the first value of a statement's only column; None if it has no rows."""
    return await (await scalars(connection).execute(statement, values)).fetchone()


def named(kind: type[Kind]) -> BaseRowFactory[Kind]:
    """Return psycopg's row factory for a NamedTuple. A field that is a NamedTuple itself is built
    from the columns that its own fields name.
    """
    return partial(_factory, kind)


def in_order(kind: type[tuple[Any, ...]]) -> BaseRowFactory[tuple[Any, ...]]:
    """Return the row factory of `tuples_of`."""
    return partial(_in_order, kind)


def _in_order(kind: type[tuple[Any, ...]], cursor: Any) -> RowMaker[tuple[Any, ...]]:
    names = _names(cursor)
    if names and not _is_in_order(kind, names):
        raise TypeError(f"The statement's columns are not in the order of {kind.__name__}.")
    return tuple if names else no_result


@cache
def _is_in_order(kind: type[tuple[Any, ...]], names: tuple[bytes | None, ...]) -> bool:
    """Return whether the columns are in the order of the fields. Raises TypeError if others."""
    row_maker(kind, names)
    return [name.encode() for name in columns_of(kind)] == [*names]


def _factory(kind: type[Kind], cursor: Any) -> RowMaker[Kind]:
    names = _names(cursor)
    return row_maker(kind, names) if names else no_result


def _scalar(cursor: Any) -> RowMaker[Any]:
    names = _names(cursor)
    if len(names) > 1:
        raise TypeError(f"The statement returns {len(names)} columns, one is expected.")
    return _first if names else no_result


_first: RowMaker[Any] = itemgetter(0)


def _names(cursor: Any) -> tuple[bytes | None, ...]:
    """Return the columns of the current result; none if it has no rows, as of an UPDATE."""
    result = cursor.pgresult
    return () if result is None else tuple(map(result.fname, range(result.nfields)))


@cache
def row_maker(kind: type[Kind], names: tuple[bytes | None, ...]) -> RowMaker[Kind]:
    """Return the function that builds a row. Raises TypeError if the columns differ."""
    found = [(name or b"").decode() for name in names]
    if refusal := differences(kind, found):
        raise TypeError(f"{kind.__name__} differs from the statement's columns: {refusal}.")
    return _builder(kind, {name: at for at, name in enumerate(found)})


def differences(kind: type[tuple[Any, ...]], found: Sequence[str]) -> str:
    """Describe how columns differ from the fields of a NamedTuple; empty if only in their order."""
    fields = columns_of(kind)
    return "; ".join(
        f"{what} {', '.join(names)}"
        for what, names in (
            ("no column", [name for name in fields if name not in found]),
            ("no field", [name for name in found if name not in fields]),
            ("more than one", sorted({name for name in found if found.count(name) > 1})),
        )
        if names
    )


def columns_of(kind: type[tuple[Any, ...]]) -> list[str]:
    """Return the columns of a NamedTuple, in the order of its fields."""
    return [
        column
        for field, part in _parts(kind).items()
        for column in ([field] if part is None else columns_of(part))
    ]


def _parts(kind: type[tuple[Any, ...]]) -> dict[str, type[tuple[Any, ...]] | None]:
    """Return the fields of a NamedTuple, each with its type if that is a NamedTuple too."""
    types = {
        name: type
        for base in reversed(kind.__mro__)
        for name, type in vars(base).get("__annotations__", {}).items()
    }
    fields: tuple[str, ...] = kind._fields  # type: ignore[attr-defined]
    return {name: types[name] if hasattr(types.get(name), "_fields") else None for name in fields}


def _builder(kind: type[Kind], indexes: dict[str, int]) -> Callable[[Sequence[Any]], Kind]:
    """Return the function that builds a row from a tuple with the columns at these indexes."""
    make: Any = partial(tuple.__new__, kind)
    parts = _parts(kind)
    if list(parts) == list(indexes):
        return make  # type: ignore[no-any-return]
    getters = [
        itemgetter(indexes[name]) if part is None else _builder(part, indexes)
        for name, part in parts.items()
    ]
    return lambda row: make([get(row) for get in getters])
