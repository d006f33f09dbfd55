"""`manage.py migrate`: Django's, but a database that this version cannot use is refused before
anything is changed, nobody waits for long behind a change of a table, and what two releases need
that run side by side is applied, and taken back, in halves. Django module.
"""

import os
import random
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import OperationalError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.executor import MigrationExecutor
from psycopg.errors import LockNotAvailable

from eventhub.base import limits
from eventhub.base.version import VERSION
from eventhub.postgresql import schema
from eventhub.postgresql.schema import MigrationForm, MigrationName
from eventhub.supervisor.command_env import (
    NoAnswer,
    NoDatabaseUrl,
    require_answer,
    require_database,
)

_HOLDERS = """
SELECT DISTINCT a.application_name, a.pid
  FROM pg_stat_activity a
  JOIN pg_locks l ON l.pid = a.pid AND l.granted
  JOIN pg_class c ON c.oid = l.relation AND c.relnamespace = 'public'::regnamespace
 WHERE a.datname = current_database() AND a.pid <> pg_backend_pid()
   AND a.xact_start < clock_timestamp() - make_interval(secs => %s)
"""
_TARGETS = ("app_label", "migration_name")


class WholeExecutor(MigrationExecutor):
    """A migration and the note that it was applied are one transaction, so that a process that is
    killed leaves both or neither. One with `atomic = False` must be fit to be repeated.
    """

    def apply_migration(self, state: Any, migration: Any, *args: Any, **options: Any) -> Any:
        with self._whole(migration):
            return super().apply_migration(state, migration, *args, **options)

    def unapply_migration(self, state: Any, migration: Any, *args: Any, **options: Any) -> Any:
        with self._whole(migration):
            return super().unapply_migration(state, migration, *args, **options)

    def _whole(self, migration: Any) -> Any:
        return transaction.atomic(self.connection.alias) if migration.atomic else nullcontext()


migrate.MigrationExecutor = WholeExecutor  # which Django's command makes


class Command(migrate.Command):
    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        half = parser.add_mutually_exclusive_group()
        half.add_argument(
            "--pre",
            action="store_true",
            help="what is to be there before processes of this release start; those of the release"
            " before go on working",
        )
        half.add_argument(
            "--back",
            choices=("post", "all"),
            help="take back what the second half of this release changed, so that the release"
            " before can start (post), or all of this release, once its processes are gone (all)",
        )

    def execute(self, *args: Any, **options: Any) -> Any:
        """Django's checks ask the database, so whether it answers comes before them."""
        try:
            require_database()
            require_answer()
        except (NoDatabaseUrl, NoAnswer) as error:
            raise CommandError(str(error)) from error
        return super().execute(*args, **options)

    def handle(self, *args: Any, **options: Any) -> None:
        connection = connections[options["database"]]
        ours = schema.migrations()
        if options["app_label"] and (options["pre"] or options["back"]):
            raise CommandError("--pre and --back are of all apps; name none.")
        with self._alone(connection):
            self._check(connection, ours, note=not (options["plan"] or options["check_unapplied"]))
            if options["pre"] or options["back"]:
                for target in self._targets(connection, ours, options["back"] or ""):
                    self._patiently(
                        *args, **{**options, **dict(zip(_TARGETS, target, strict=True))}
                    )
            else:
                self._patiently(*args, **options)

    @contextmanager
    def _alone(self, connection: BaseDatabaseWrapper) -> Iterator[None]:
        """One process migrates at a time, and waits for a lock on a table for a moment only."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_lock(%s)", [schema.LOCK])
            if not cursor.fetchone()[0]:
                self.stdout.write("Another process migrates this database: waiting for its end.")
                self.stdout.flush()
                cursor.execute("SELECT pg_advisory_lock(%s)", [schema.LOCK])
            cursor.execute(f"SET lock_timeout = {limits.MIGRATE_LOCK_MS_MAX}")
            try:
                yield
            finally:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [schema.LOCK])
                cursor.execute("RESET lock_timeout")

    def _check(
        self,
        connection: BaseDatabaseWrapper,
        ours: dict[MigrationName, MigrationForm],
        *,
        note: bool,
    ) -> None:
        with transaction.atomic(connection.alias), connection.cursor() as cursor:
            found = schema.read(cursor, ours)
            try:
                schema.require_same(found, ours)
                schema.require_hub_tables(cursor, found)
            except schema.OtherSchema as error:
                raise CommandError(str(error), returncode=os.EX_CONFIG) from error
            if note:
                schema.record(cursor, found, ours)

    def _targets(
        self, connection: BaseDatabaseWrapper, ours: dict[MigrationName, MigrationForm], back: str
    ) -> Iterator[tuple[str, str]]:
        """The migration of each app to go to."""
        loader = MigrationExecutor(connection).loader
        graph, applied = loader.graph, loader.applied_migrations
        leaves = graph.leaf_nodes()
        if back and not any(MigrationName(*node) in ours for node in applied):
            self.stdout.write(
                "Nothing of a hub is in this database: there is nothing to take back."
            )
            return
        plan = dict.fromkeys(node for leaf in leaves for node in graph.forwards_plan(leaf))
        held: set[tuple[str, str]] = set()  # with all that depends on them
        for node in plan:
            needs_held = any(parent.key in held for parent in graph.node_map[node].parents)
            form = ours.get(MigrationName(*node))
            if needs_held or (form and _is_held(form, back, is_applied=node in applied)):
                held.add(node)
        for app, leaf in leaves:
            if back and (app, leaf) not in held:
                continue
            names = [name for label, name in plan if label == app and (label, name) not in held]
            if not names:
                raise CommandError(f"{VERSION} is the first release: there is none to go back to.")
            yield app, names[-1]

    def _patiently(self, *args: Any, **options: Any) -> None:
        """Who waits for a lock on a table makes everybody wait who comes later, so it is given up
        soon and asked for again. What was applied by then stays."""
        until = time.monotonic() + limits.MIGRATE_S_MAX
        connection = connections[options["database"]]
        while True:
            try:
                super().handle(*args, **options)
                return
            except OperationalError as error:
                if not isinstance(error.__cause__, LockNotAvailable):
                    raise
                if time.monotonic() > until:
                    raise CommandError(
                        f"A table was in use for {limits.MIGRATE_S_MAX:.0f} s; what was applied"
                        " stays. Try again when long queries have ended."
                    ) from error
            self.stdout.write(f"  a table is in use{_holders(connection)}: trying again")
            self.stdout.flush()
            time.sleep(random.uniform(*limits.MIGRATE_PAUSE_S))  # noqa: S311 - no secret


def _is_held(form: MigrationForm, back: str, *, is_applied: bool) -> bool:
    """Whether a migration is left out, or taken back."""
    if not back:
        return form.half == "post" and not is_applied
    return schema.is_of_this_release(form) and (back == "all" or form.half == "post")


def _holders(connection: BaseDatabaseWrapper) -> str:
    """Who holds locks on tables for longer than a migration waits for one."""
    with connection.cursor() as cursor:
        cursor.execute(_HOLDERS, [limits.MIGRATE_LOCK_MS_MAX / 1_000])
        found = [f"{name or 'a session'} (pid {pid})" for name, pid in cursor.fetchall()]
    return f" by {', '.join(found)}" if found else ""
