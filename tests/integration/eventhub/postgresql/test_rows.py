"""Rows are matched with NamedTuples by name: when they are read, and in every statement."""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, LiteralString, NamedTuple

import psycopg
import pytest

from delivery.forward.leases import STREAMS
from eventhub.postgresql.rows import columns_of, cursor_of, differences, named, scalars, tuples_of
from eventhub.postgresql.schema import HOME
from tests.databases import migrated_database
from tests.integration.eventhub.postgresql.test_models import FOLDERS, columns

BY_POSITION = (  # rows of another kind, or of tables of a release before
    "eventhub/management/takeover.py",
    "clients/python/eventhub_client/outbox_file.py",
    "eventhub/eventlog/transient.py",
    "eventhub/eventlog/read.py",
)


class Place(NamedTuple):
    segment: str
    sequence: int


class Head(NamedTuple):
    place: Place
    stream_id: int


@pytest.fixture(scope="module")
def migrated() -> Iterator[str]:
    with migrated_database("rows") as url:
        yield url


@pytest.fixture
def connection(migrated: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(migrated, autocommit=True) as connection:
        yield connection


@pytest.mark.parametrize(
    "query", ["SELECT 'a' AS segment, 1 AS sequence", "SELECT 1 AS sequence, 'a' AS segment"]
)
def test_the_order_of_columns_does_not_matter(
    connection: psycopg.Connection[Any], query: LiteralString
) -> None:
    found = cursor_of(connection, Place).execute(query).fetchone()
    assert found == Place(segment="a", sequence=1)
    assert isinstance(found, Place)


def test_columns_go_into_the_named_tuples_of_a_named_tuple(
    connection: psycopg.Connection[Any],
) -> None:
    query = cursor_of(connection, Head)
    found = query.execute("SELECT 7 AS stream_id, 1 AS sequence, 'a' AS segment").fetchall()
    assert found == [Head(Place("a", 1), 7)]
    assert isinstance(found[0].place, Place)


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELECT 'a' AS segment", "no column sequence"),
        ("SELECT 'a' AS segment, 1", "no field [?]column[?]"),
        ("SELECT 'a' AS segment, 1 AS sequence, 2 AS first", "no field first"),
        ("SELECT 'a' AS segment, 1 AS sequence, 2 AS sequence", "more than one sequence"),
        ("SELECT 'a' AS segment, 1 AS sequence, 2 AS first WHERE false", "no field first"),
    ],
)
def test_columns_that_are_not_the_fields_are_refused(
    connection: psycopg.Connection[Any], query: LiteralString, why: str
) -> None:
    with pytest.raises(TypeError, match=f"Place .*{why}"):
        cursor_of(connection, Place).execute(query)
    assert cursor_of(connection, Place).execute("SELECT 'b' segment, 2 AS sequence").fetchall()


def test_plain_tuples_are_in_the_order_of_the_fields(connection: psycopg.Connection[Any]) -> None:
    query = tuples_of(connection, Place)
    assert query.execute("SELECT 'a' AS segment, 1 AS sequence").fetchall() == [("a", 1)]
    with pytest.raises(TypeError, match="not in the order of Place"):
        query.execute("SELECT 1 AS sequence, 'a' AS segment")
    with pytest.raises(TypeError, match=r"Place .*no column sequence"):
        query.execute("SELECT 'a' AS segment")


def test_a_scalar_is_the_only_column(connection: psycopg.Connection[Any]) -> None:
    query = scalars(connection)
    assert query.execute("SELECT generate_series(1, 3)").fetchall() == [1, 2, 3]
    assert query.execute("SELECT 1 WHERE false").fetchone() is None
    assert query.execute("SET LOCAL work_mem = '64MB'").rowcount == -1  # no rows at all
    with pytest.raises(TypeError, match="returns 2"):
        query.execute("SELECT 1, 2")


def test_a_cursor_of_the_server_has_named_rows(connection: psycopg.Connection[Any]) -> None:
    query = "SELECT n AS sequence, 'a' AS segment FROM generate_series(1, 3) AS n"
    with connection.transaction():
        with connection.cursor("kept", row_factory=named(Place)) as cursor:
            cursor.itersize = 2
            cursor.execute(query)
            assert list(cursor) == [Place("a", 1), Place("a", 2), Place("a", 3)]
        refused = pytest.raises(TypeError, match="no column stream_id")
        with connection.cursor("refused", row_factory=named(Head)) as cursor, refused:
            cursor.execute(query)


class Mapped(NamedTuple):
    """A call that asks for a statement's rows: `how`, by a function of eventlog/rows.py. `kind`
    None: for the values of its only column.
    """

    place: str
    how: str
    kind: type[tuple[Any, ...]] | None
    statement: str


def mapped() -> Iterator[Mapped]:
    """Yield every call of `execute` on a cursor of a kind, or of scalars, with a named
    statement.
    """
    for file in sorted(file for folder in FOLDERS for file in (HOME / folder).rglob("*.py")):
        if "eventhub.postgresql.rows import" in file.read_text():
            yield from _calls(file)


def _calls(file: Path) -> Iterator[Mapped]:
    module = importlib.import_module(".".join(file.relative_to(HOME).with_suffix("").parts))
    for function in ast.walk(ast.parse(file.read_text())):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        known: dict[str, ast.Call] = {}
        for node in ast.walk(function):
            match node:
                case ast.Assign([ast.Name(name)], ast.Call() as cursor):
                    known[name] = cursor
                case ast.withitem(ast.Call() as cursor, ast.Name(name)):
                    known[name] = cursor
        for node in ast.walk(function):
            match node:
                case ast.Call(ast.Attribute(on, "execute"), [ast.Subscript() as statement, *_]):
                    cursor = known.get(on.id) if isinstance(on, ast.Name) else on
                    yield from _mapped(module, cursor, statement)


def _mapped(module: Any, cursor: ast.expr | None, statement: ast.Subscript) -> Iterator[Mapped]:
    match cursor:
        case ast.Call(ast.Name("cursor_of" | "tuples_of" as how), [_, name]):
            kind = _value(module, name)
        case ast.Call(keywords=[*_, ast.keyword(value=ast.Call(ast.Name(how), [name]))]):
            kind = _value(module, name)
        case ast.Call(ast.Name("scalars" as how)):
            kind = None
        case _:
            return
    for node in ast.walk(statement.slice):  # one name, or one of two
        match node:
            case ast.Constant(str() as one):
                text = _value(module, statement.value)[one]
                yield Mapped(f"{module.__name__} {one}", how, kind, text)


def _value(module: Any, expression: ast.expr) -> Any:
    """Evaluate an expression of a module; `self._table` is one of the tables of leases."""
    names = {**vars(module), "self": SimpleNamespace(_table=STREAMS)}
    return eval(ast.unparse(expression), names)


def test_every_statement_has_the_columns_of_its_named_tuple(
    connection: psycopg.Connection[Any],
) -> None:
    """A column or a field that is added, dropped or renamed on one side fails here, even if no
    test runs the statement.
    """
    found = list(mapped())
    wrong = {one.place: drift for one in found if (drift := _drift(connection, one))}
    assert wrong == {}
    assert len([one for one in found if one.kind is not None]) > 80
    assert len([one for one in found if one.kind is None]) > 50


def _drift(connection: psycopg.Connection[Any], one: Mapped) -> str:
    names = columns(connection, one.statement)
    if one.kind is None:
        return "" if len(names) == 1 else f"{len(names)} columns"
    if one.how in ("tuples_of", "in_order") and names != columns_of(one.kind):
        return f"{names}, not {columns_of(one.kind)}"
    return differences(one.kind, names)


def test_no_row_is_read_by_position() -> None:
    """A connection's own cursor gives plain tuples; whether there is a row may be asked of it."""
    found = [
        f"{file.relative_to(HOME)}:{line}"
        for folder in FOLDERS
        for file in sorted((HOME / folder).rglob("*.py"))
        for line in _read_by_position(ast.parse(file.read_text()))
        if file.relative_to(HOME).as_posix() not in BY_POSITION
    ]
    assert found == []


def _read_by_position(tree: ast.Module) -> Iterator[int]:
    asked = {
        id(node.left if isinstance(node, ast.Compare) else node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Is | ast.IsNot)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Subscript(ast.Name("row"), ast.Constant(int())):
                yield node.lineno
            case ast.Call(ast.Attribute(executed, "fetchone" | "fetchall")) if id(
                node
            ) not in asked and _is_plain(executed):
                yield node.lineno


def _is_plain(executed: ast.expr) -> bool:
    """Return whether the call is `connection.execute(…)`, awaited or not."""
    match executed:
        case ast.Await(inner):
            return _is_plain(inner)
        case ast.Call(ast.Attribute(ast.Name("connection") | ast.Attribute(), "execute")):
            return True
        case ast.Call(ast.Attribute(ast.Call(ast.Name("raw_connection")), "execute")):
            return True
    return False


@pytest.mark.parametrize(
    "text",
    [
        "x = connection.execute(SQL['a']).fetchone()",
        "x = (await (await connection.execute(SQL['a'])).fetchall())",
        "x = self._connection.execute(SQL['a']).fetchone()",
        "x = raw_connection().execute(SQL['a']).fetchall()",
        "x = [row[0] for row in rows]",
    ],
)
def test_a_row_that_is_read_by_position_is_found(text: str) -> None:
    assert list(_read_by_position(ast.parse(f"async def f(): {text}"))) == [1]


def test_rows_that_have_names_are_no_finding() -> None:
    text = (
        "x = scalars(connection).execute(SQL['a']).fetchone()\nx = y.execute().fetchone() is None"
    )
    assert list(_read_by_position(ast.parse(text))) == []
