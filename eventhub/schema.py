"""Tell whether a database's tables are those of this version: each migration has a digest, kept in
the database when it is applied. Plain: its SQL runs on the cursor of whoever asks.

A migration is never changed after a release; one that was changed after it was applied means other
tables than the code expects, which is refused. A migration that is new is applied as usual.
"""

import ast
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Set
from pathlib import Path
from typing import Any, NamedTuple, Protocol

HOME = Path(__file__).resolve().parents[1]
FOLDERS = ("eventhub/*/migrations", "registrations/migrations", "delivery/migrations")
_NAMED_MAX = 6  # migrations in one message
_MAKE = """
CREATE TABLE IF NOT EXISTS schema_digests (
    app text NOT NULL,
    name text NOT NULL,
    digest text NOT NULL,
    PRIMARY KEY (app, name)
)
"""
_KEEP = """
INSERT INTO schema_digests (app, name, digest) VALUES (%s, %s, %s)
ON CONFLICT (app, name) DO UPDATE SET digest = excluded.digest
"""
_THERE = (
    "SELECT to_regclass('django_migrations') IS NOT NULL, to_regclass('schema_digests') IS NOT NULL"
)
_TABLES = """
SELECT c.relname
  FROM pg_class c
 WHERE c.relnamespace = to_regnamespace('public') AND c.relkind IN ('r', 'p')
   AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')
 ORDER BY c.relname
"""

# what is kept of SQL as it is, and what is left out: comments, and space beyond one blank
_SQL = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|(--[^\n]*|/\*.*?\*/|\s)+", re.DOTALL)


class OtherSchema(Exception):
    """The tables are not those of this version; the message says what to do."""


class Migration(NamedTuple):
    """By Django's names: the app's label and the module."""

    app: str
    name: str


# from when tables were files of SQL
BEFORE_0_1 = frozenset({Migration("eventlog", "0001_log"), Migration("access", "0001_access")})


class Cursor(Protocol):
    """Of psycopg or of Django."""

    def execute(self, query: Any, params: Any = None, /) -> Any: ...
    def fetchall(self) -> list[tuple[Any, ...]]: ...


class Found(NamedTuple):
    """What a database says: the migrations of the hub's apps that it has, and their digests."""

    applied: Set[Migration]
    digests: Mapping[Migration, str]


def digests(home: Path = HOME) -> dict[Migration, str]:
    """Return the digest of every migration of this version: of its code without docstrings and
    comments, and of the SQL files that it names, however their lines are broken."""
    files = (file for folder in FOLDERS for file in home.glob(f"{folder}/[0-9]*.py"))
    return {Migration(file.parents[1].name, file.stem): _digest(file) for file in files}


def read(cursor: Cursor, ours: Mapping[Migration, str]) -> Found:
    """Read what is in a database; nothing in an empty one."""
    cursor.execute(_THERE)
    [(migrated, kept)] = cursor.fetchall()
    applied: set[Migration] = set()
    digests: dict[Migration, str] = {}
    if migrated:
        apps = sorted({migration.app for migration in ours})
        cursor.execute("SELECT app, name FROM django_migrations WHERE app = ANY(%s)", [apps])
        applied = {Migration(app, name) for app, name in cursor.fetchall()}
    if kept:
        cursor.execute("SELECT app, name, digest FROM schema_digests")
        digests = {Migration(app, name): digest for app, name, digest in cursor.fetchall()}
    return Found(applied, digests)


def keep(cursor: Cursor, found: Found, ours: Mapping[Migration, str]) -> None:
    """Note the digests of migrations before they are applied: one that is applied without its
    digest would be refused for ever."""
    cursor.execute(_MAKE)
    for migration, digest in ours.items():
        if migration not in found.applied:
            cursor.execute(_KEEP, [*migration, digest])


def require_same(found: Found, ours: Mapping[Migration, str]) -> None:
    """Raise OtherSchema if a migration was applied that this version has not, or has otherwise."""
    unknown = found.applied - ours.keys()
    if unknown & BEFORE_0_1:
        raise OtherSchema(
            f"The tables of this database are of before 0.1 ({_names(unknown)}). Nothing was"
            " changed. With the hub stopped, run `manage.py takeover` once (with `--data FOLDER`,"
            " or DATABASE_URL where it is set), which keeps every row; see docs/upgrading.md."
        )
    if unknown:
        raise OtherSchema(
            f"The tables of this database were made by a newer version of the hub "
            f"({_names(unknown)}). Nothing was changed. Run that version or a newer one."
        )
    if other := [one for one in found.applied if found.digests.get(one) != ours[one]]:
        raise OtherSchema(
            f"The tables of this database were made by another version of the hub "
            f"({_names(other)}). Nothing was changed. Run the version that made them, or begin "
            "with a new data folder (make run DATA=…), or with an empty database if DATABASE_URL "
            "is set."
        )


def _names(migrations: Iterable[Migration]) -> str:
    found = sorted(migrations)
    names = ", ".join(f"{app}.{name}" for app, name in found[:_NAMED_MAX])
    return names + (f" and {len(found) - _NAMED_MAX} more" if len(found) > _NAMED_MAX else "")


def require_own(cursor: Cursor, found: Found) -> None:
    """Raise OtherSchema if the database has tables, but none of a hub: then they are of something
    else, and would be mixed with the hub's or replaced by them."""
    if found.applied or found.digests:
        return
    cursor.execute(_TABLES)
    if names := [name for (name,) in cursor.fetchall()]:
        few = ", ".join(names[:_NAMED_MAX])
        more = f" and {len(names) - _NAMED_MAX} more" if len(names) > _NAMED_MAX else ""
        raise OtherSchema(
            f"This database has tables that are not a hub's ({few}{more}). Nothing was changed. "
            "Give the hub an empty database of its own."
        )


def require_complete(found: Found, ours: Mapping[Migration, str]) -> None:
    """Raise OtherSchema as well if a migration of this version was not applied yet."""
    require_same(found, ours)
    if missing := ours.keys() - found.applied:
        raise OtherSchema(
            f"The database lacks tables of this version ({_names(missing)}). Run `manage.py "
            "migrate` on it, once, before what uses it is started."
        )


def _digest(file: Path) -> str:
    tree = ast.parse(file.read_text())
    named = sorted(_sql_files(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node
        ):
            del node.body[0]
    found = hashlib.sha256(ast.unparse(tree).encode())
    for name in named:
        [found_file] = (file.parents[1] / "sql").rglob(name)
        text = found_file.read_text()
        found.update(f"\0{name}\0{plain_sql(text)}".encode())
    return found.hexdigest()


def _sql_files(tree: ast.Module) -> Iterator[str]:
    texts = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return (text for text in texts if isinstance(text, str) and re.fullmatch(r"[\w.]+\.sql", text))


def plain_sql(text: str) -> str:
    """Return the statements without comments, with one blank for any space outside quotes."""
    return _SQL.sub(lambda found: " " if found[1] else found[0], text).strip()
