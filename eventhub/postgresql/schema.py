"""Tell whether this version can work with a database's tables: each migration has a digest, kept in
the database when it is applied. Plain module.

A migration is never changed after a release; one that was changed after it was applied means other
tables than the code expects, which is refused. A migration that is new is applied as usual.

Two releases run side by side while processes are replaced one by one, so each migration names its
release, and belongs to one of two halves: `pre`, after which the release before goes on working,
and `post` (`half = "post"`), which is applied when none of its processes is left.
"""

import ast
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Set
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from eventhub.base.version import VERSION

HOME = Path(__file__).resolve().parents[2]
APPS = {
    "access": "eventhub/access",
    "delivery": "delivery",
    "eventlog": "eventhub/eventlog",
    "jobs": "sparkjobs/runs",
    "registrations": "registrations",
    "types": "eventhub/types",
}  # the folder of each app with tables, by Django's label
LOCK = 4_711_017  # an advisory one, of the process that migrates or takes over
_NAMED_MAX = 6  # migrations in one message
_MAKE = """
CREATE TABLE IF NOT EXISTS schema_digests (
    app text NOT NULL,
    name text NOT NULL,
    digest text NOT NULL,
    release text NOT NULL,
    half text NOT NULL,
    PRIMARY KEY (app, name)
)
"""
_KEEP = """
INSERT INTO schema_digests (app, name, digest, release, half) VALUES (%s, %s, %s, %s, %s)
ON CONFLICT (app, name) DO UPDATE
   SET digest = excluded.digest, release = excluded.release, half = excluded.half
"""
_THERE = (
    "SELECT to_regclass('django_migrations') IS NOT NULL, to_regclass('schema_digests') IS NOT NULL"
)
# but those that a `migrate` which was killed may leave alone
_TABLES = """
SELECT c.relname
  FROM pg_class c
 WHERE c.relnamespace = to_regnamespace('public') AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
   AND c.relname NOT IN ('schema_digests', 'django_migrations')
   AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')
 ORDER BY c.relname
"""

# a name that is qualified by its module
_MODULE = re.compile(r"(?:delivery|django|eventhub|registrations|sparkjobs)\.[\w.]+\Z")
# what is kept of SQL as it is, and what is left out: comments, and space beyond one blank
_SQL = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|(--[^\n]*|/\*.*?\*/|\s)+", re.DOTALL)


class OtherSchema(Exception):
    """The tables are not those of this version; the message says what to do."""


class Migration(NamedTuple):
    """By Django's names: the app's label and the module."""

    app: str
    name: str


class Form(NamedTuple):
    """What a migration is: which statements, of which release, and in which half of an upgrade."""

    digest: str
    release: str
    half: str = "pre"


# from when tables were files of SQL
BEFORE_0_1 = frozenset({Migration("eventlog", "0001_log"), Migration("access", "0001_access")})


class Cursor(Protocol):
    """Of psycopg or of Django."""

    def execute(self, query: Any, params: Any = None, /) -> Any: ...
    def fetchall(self) -> list[tuple[Any, ...]]: ...


class Found(NamedTuple):
    """What a database says: the migrations of the hub's apps that it has, and what they were."""

    applied: Set[Migration]
    forms: Mapping[Migration, Form]


def migrations(home: Path = HOME) -> dict[Migration, Form]:
    """Return every migration of this version. Its digest is of its code without docstrings and
    comments, and of the SQL files that it names, however their lines are broken."""
    return {
        Migration(app, file.stem): _form(file)
        for app, folder in APPS.items()
        for file in (home / folder / "migrations").glob("[0-9]*.py")
    }


def read(cursor: Cursor, ours: Mapping[Migration, Form]) -> Found:
    """Read what is in a database; nothing in an empty one."""
    cursor.execute(_THERE)
    [(migrated, kept)] = cursor.fetchall()
    applied: set[Migration] = set()
    forms: dict[Migration, Form] = {}
    if migrated:
        apps = sorted({migration.app for migration in ours})
        cursor.execute("SELECT app, name FROM django_migrations WHERE app = ANY(%s)", [apps])
        applied = {Migration(app, name) for app, name in cursor.fetchall()}
    if kept:
        cursor.execute("SELECT app, name, digest, release, half FROM schema_digests")
        forms = {Migration(app, name): Form(*form) for app, name, *form in cursor.fetchall()}
    return Found(applied, forms)


def keep(cursor: Cursor, found: Found, ours: Mapping[Migration, Form]) -> None:
    """Note what migrations are before they are applied: one that is applied without its digest
    would be refused for ever."""
    cursor.execute(_MAKE)
    for migration, form in ours.items():
        if migration not in found.applied:
            cursor.execute(_KEEP, [*migration, *form])


def require_same(found: Found, ours: Mapping[Migration, Form]) -> None:
    """Raise OtherSchema if a migration was applied that this version has not, or has otherwise. The
    first half of the release after this one is no obstacle."""
    unknown = found.applied - ours.keys()
    if unknown & BEFORE_0_1:
        raise OtherSchema(
            f"The tables of this database are of before 0.1 ({_names(unknown)}). Nothing was"
            " changed. With the hub stopped, run `manage.py takeover` once (with `--data FOLDER`,"
            " or DATABASE_URL where it is set), which keeps every row; see docs/upgrading.md."
        )
    if newer := {one for one in unknown if not _is_harmless(found.forms.get(one))}:
        raise OtherSchema(
            f"The tables of this database were made by a newer version of the hub "
            f"({_names(newer)}). Nothing was changed. Run that version or a newer one, or go back "
            "with its `manage.py migrate --back`; see docs/upgrading.md."
        )
    known = found.applied - unknown
    if other := [one for one in known if _digest_of(found, one) != ours[one].digest]:
        raise OtherSchema(
            f"The tables of this database were made by another version of the hub "
            f"({_names(other)}). Nothing was changed. Run the version that made them, or begin "
            "with a new data folder (make run DATA=…), or with an empty database if DATABASE_URL "
            "is set."
        )


def _digest_of(found: Found, migration: Migration) -> str:
    return found.forms[migration].digest if migration in found.forms else ""


def _is_harmless(form: Form | None) -> bool:
    """True for what the release after this one adds before its own processes start."""
    return form is not None and form.half == "pre" and _follows(form.release, VERSION)


def _follows(release: str, version: str) -> bool:
    """True if at most one release (the second number, or the first with a second of 0) lies
    between them."""
    major, minor = (int(part) for part in release.split(".")[:2])
    own_major, own_minor = (int(part) for part in version.split(".")[:2])
    return (major, minor) in (
        (own_major, own_minor),
        (own_major, own_minor + 1),
        (own_major + 1, 0),
    )


def _names(migrations: Iterable[Migration]) -> str:
    found = sorted(migrations)
    names = ", ".join(f"{app}.{name}" for app, name in found[:_NAMED_MAX])
    return names + (f" and {len(found) - _NAMED_MAX} more" if len(found) > _NAMED_MAX else "")


def require_own(cursor: Cursor, found: Found) -> None:
    """Raise OtherSchema if the database has tables, but none of a hub: then they are of something
    else, and would be mixed with the hub's or replaced by them."""
    if found.applied or found.forms:
        return
    cursor.execute(_TABLES)
    if names := [name for (name,) in cursor.fetchall()]:
        few = ", ".join(names[:_NAMED_MAX])
        more = f" and {len(names) - _NAMED_MAX} more" if len(names) > _NAMED_MAX else ""
        raise OtherSchema(
            f"This database has tables that are not a hub's ({few}{more}). Nothing was changed. "
            "Give the hub an empty database of its own."
        )


def require_complete(found: Found, ours: Mapping[Migration, Form]) -> None:
    """Raise OtherSchema as well if a migration was not applied yet that this version needs: one of
    the first half of its release, or of a release before."""
    require_same(found, ours)
    late = {one for one, form in ours.items() if form.half == "post" and is_of_now(form)}
    if missing := ours.keys() - found.applied - late:
        raise OtherSchema(
            f"The database lacks tables of this version ({_names(missing)}). Run `manage.py "
            "migrate` on it, once, before what uses it is started."
        )


def is_of_now(form: Form) -> bool:
    """True for a migration of this release."""
    return form.release.split(".")[:2] == VERSION.split(".")[:2]


def _form(file: Path) -> Form:
    """Raises ValueError for a migration that names no release."""
    tree = ast.parse(file.read_text())
    said = {
        target.id: str(node.value.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    if "release" not in said:
        raise ValueError(f"{file} does not say of which release it is: `release`.")
    return Form(_digest(file, tree), said["release"], said.get("half", "pre"))


def _digest(file: Path, tree: ast.Module) -> str:
    named = sorted(_sql_files(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node
        ):
            del node.body[0]
    found = hashlib.sha256(ast.unparse(_Unplaced().visit(tree)).encode())
    for name in named:
        [found_file] = (file.parents[1] / "sql").rglob(name)
        text = found_file.read_text()
        found.update(f"\0{name}\0{plain_sql(text)}".encode())
    return found.hexdigest()


class _Unplaced(ast.NodeTransformer):
    """Drops what only says in which modules names are defined: a module that moves changes no
    migration."""

    def visit_Import(self, node: ast.Import) -> None:
        return None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        return None

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        return ast.Name(node.attr) if _MODULE.match(ast.unparse(node)) else node


def _sql_files(tree: ast.Module) -> Iterator[str]:
    texts = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return (text for text in texts if isinstance(text, str) and re.fullmatch(r"[\w.]+\.sql", text))


def plain_sql(text: str) -> str:
    """Return the statements without comments, with one blank for any space outside quotes."""
    return _SQL.sub(lambda found: " " if found[1] else found[0], text).strip()
