"""The compatibility of this version with a database's tables: each migration has a digest, recorded
in the database when it is applied. Plain module.

A migration is never changed after a release. One that was changed after it was applied means other
tables than the code expects, which is refused. A new migration is applied as usual.

Two releases run side by side while processes are replaced one by one. So each migration names its
release and belongs to one of two halves: `pre`, after which the previous release still works, and
`post` (`half = "post"`), which is applied when none of its processes is left.
"""

from collections.abc import Iterable, Iterator, Mapping, Set
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from eventhub.base.version import VERSION
from eventhub.postgresql.migration_forms import KNOWN, MigrationForm, form_of, forms_as_text

HOME = Path(__file__).resolve().parents[2]
APPS = {
    "access": "eventhub/access",
    "applications": "eventhub/applications",
    "connectors": "registrations/connectors",
    "delivery": "delivery",
    "eventlog": "eventhub/eventlog",
    "hub_patterns": "registrations/pattern_groups",
    "hub_sessions": "eventhub/sessions",
    "jobs": "sparkjobs/runs",
    "monitoring": "eventhub/monitoring",
    "registrations": "registrations",
    "sources": "registrations/sources",
    "timers": "registrations/timers",
    "types": "eventhub/types",
}  # the folder of each app with tables, by Django's label
LOCK = 4_711_017  # the advisory lock of a process that migrates or takes over
_NAMED_MAX = 6  # migrations in one message
_CREATE = """
CREATE TABLE IF NOT EXISTS schema_digests (
    app text NOT NULL,
    name text NOT NULL,
    digest text NOT NULL,
    release text NOT NULL,
    half text NOT NULL,
    PRIMARY KEY (app, name)
)
"""
_RECORD = """
INSERT INTO schema_digests (app, name, digest, release, half) VALUES (%s, %s, %s, %s, %s)
ON CONFLICT (app, name) DO UPDATE
   SET digest = excluded.digest, release = excluded.release, half = excluded.half
"""
_EXISTS = (
    "SELECT to_regclass('django_migrations') IS NOT NULL, to_regclass('schema_digests') IS NOT NULL"
)
# without the two tables that a killed `migrate` may leave in an empty database
_TABLES = """
SELECT c.relname
  FROM pg_class c
 WHERE c.relnamespace = to_regnamespace('public') AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
   AND c.relname NOT IN ('schema_digests', 'django_migrations')
   AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')
 ORDER BY c.relname
"""


class OtherSchema(Exception):
    """The tables are not those of this version; the message says what to do."""


class MigrationName(NamedTuple):
    """Django's names of a migration: the app's label and the module."""

    app: str
    name: str


# of versions whose tables were SQL files
BEFORE_0_1 = frozenset(
    {MigrationName("eventlog", "0001_log"), MigrationName("access", "0001_access")}
)


class SqlCursor(Protocol):
    """A cursor of psycopg or of Django."""

    def execute(self, query: Any, params: Any = None, /) -> Any: ...
    def fetchall(self) -> list[tuple[Any, ...]]: ...


class SchemaState(NamedTuple):
    """The migrations of the hub's apps that a database has, and their recorded forms."""

    applied: Set[MigrationName]
    forms: Mapping[MigrationName, MigrationForm]


def migrations(home: Path = HOME) -> dict[MigrationName, MigrationForm]:
    """Return every migration of this version."""
    return {name: form_of(file, ".".join(name)) for name, file in _files(home)}


def _files(home: Path) -> Iterator[tuple[MigrationName, Path]]:
    for app, folder in APPS.items():
        for file in (home / folder / "migrations").glob("[0-9]*.py"):
            yield MigrationName(app, file.stem), file


def forms_text() -> str:
    """Return the content of migration_forms.json for this version."""
    return forms_as_text({".".join(name): file for name, file in _files(HOME)})


def read(cursor: SqlCursor, ours: Mapping[MigrationName, MigrationForm]) -> SchemaState:
    """Read the state of a database; an empty one has no migrations."""
    cursor.execute(_EXISTS)
    [(migrated, recorded)] = cursor.fetchall()
    applied: set[MigrationName] = set()
    forms: dict[MigrationName, MigrationForm] = {}
    if migrated:
        apps = sorted({migration.app for migration in ours})
        cursor.execute("SELECT app, name FROM django_migrations WHERE app = ANY(%s)", [apps])
        applied = {MigrationName(app, name) for app, name in cursor.fetchall()}
    if recorded:
        cursor.execute("SELECT app, name, digest, release, half FROM schema_digests")
        forms = {
            MigrationName(app, name): MigrationForm(*form) for app, name, *form in cursor.fetchall()
        }
    return SchemaState(applied, forms)


def record(
    cursor: SqlCursor, found: SchemaState, ours: Mapping[MigrationName, MigrationForm]
) -> None:
    """Record the forms of migrations before they are applied: one that is applied without its
    digest would be refused for ever.
    """
    cursor.execute(_CREATE)
    for migration, form in ours.items():
        if migration not in found.applied:
            cursor.execute(_RECORD, [*migration, *form])


def require_same(found: SchemaState, ours: Mapping[MigrationName, MigrationForm]) -> None:
    """Raise OtherSchema if a migration was applied that this version lacks, or has in another form.
    The first half of the next release is accepted.
    """
    unknown = found.applied - ours.keys()
    if unknown & BEFORE_0_1:
        raise OtherSchema(
            f"The tables of this database are from before 0.1 ({_names(unknown)}). Nothing was"
            " changed. With the hub stopped, run `manage.py takeover` once (with `--data FOLDER`,"
            " or DATABASE_URL where it is set), which retains every row; see docs/upgrading.md."
        )
    if newer := {one for one in unknown if not _is_harmless(found.forms.get(one))}:
        raise OtherSchema(
            f"The tables of this database were created by a newer version of the hub "
            f"({_names(newer)}). Nothing was changed. Run that version or a newer one, or go back "
            "with its `manage.py migrate --back`; see docs/upgrading.md."
        )
    known = found.applied - unknown
    if other := [one for one in known if _digest_of(found, one) != ours[one].digest]:
        raise OtherSchema(
            f"The tables of this database were created by another version of the hub "
            f"({_names(other)}). Nothing was changed. Run the version that created them, or start "
            "with a new data folder (make run DATA=…), or with an empty database if DATABASE_URL "
            "is set."
        )


def _digest_of(found: SchemaState, migration: MigrationName) -> str:
    return found.forms[migration].digest if migration in found.forms else ""


def _is_harmless(form: MigrationForm | None) -> bool:
    """Return whether the next release applies it before its own processes start."""
    return form is not None and form.half == "pre" and _follows(form.release, VERSION)


def _follows(release: str, version: str) -> bool:
    """Return whether `release` is the version's own, or the next one (the second number, or the
    first with a second of 0).
    """
    major, minor = (int(part) for part in release.split(".")[:2])
    own_major, own_minor = (int(part) for part in version.split(".")[:2])
    return (major, minor) in (
        (own_major, own_minor),
        (own_major, own_minor + 1),
        (own_major + 1, 0),
    )


def _names(migrations: Iterable[MigrationName]) -> str:
    found = sorted(migrations)
    names = ", ".join(f"{app}.{name}" for app, name in found[:_NAMED_MAX])
    return names + (f" and {len(found) - _NAMED_MAX} more" if len(found) > _NAMED_MAX else "")


def require_hub_tables(cursor: SqlCursor, found: SchemaState) -> None:
    """Raise OtherSchema if the database has tables, but none of a hub: those of another program
    would be mixed with the hub's, or replaced by them.
    """
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


def require_complete(found: SchemaState, ours: Mapping[MigrationName, MigrationForm]) -> None:
    """Raise OtherSchema also if a migration that this version needs is not applied yet: one of the
    first half of its release, or of an earlier release.
    """
    require_same(found, ours)
    late = {one for one, form in ours.items() if form.half == "post" and is_of_this_release(form)}
    if missing := ours.keys() - found.applied - late:
        raise OtherSchema(
            f"The database lacks tables of this version ({_names(missing)}). Run `manage.py "
            "migrate` on it once, before you start the processes that use it."
        )


def is_of_this_release(form: MigrationForm) -> bool:
    """Return whether the migration belongs to this release."""
    return form.release.split(".")[:2] == VERSION.split(".")[:2]


if __name__ == "__main__":
    KNOWN.write_text(forms_text())
