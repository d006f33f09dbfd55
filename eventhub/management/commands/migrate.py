"""`manage.py migrate`: Django's command, with three additions. It refuses a database that this
version cannot use before any change; other sessions wait only briefly behind its locks; and changes
for two releases that run side by side are applied, and reverted, in halves. Django module.
"""

import os
import random
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from copy import copy
from typing import Any

from django.core.checks import Tags
from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import OperationalError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.executor import MigrationExecutor
from psycopg.errors import LockNotAvailable

from eventhub.base import limits
from eventhub.base.version import VERSION
from eventhub.management.command import require_answer, require_database
from eventhub.management.grouped import grouped
from eventhub.postgresql import schema
from eventhub.postgresql.migration_forms import MigrationForm
from eventhub.postgresql.schema import MigrationName

_HOLDERS = """
SELECT DISTINCT a.application_name, a.pid
  FROM pg_stat_activity a
  JOIN pg_locks l ON l.pid = a.pid AND l.granted
  JOIN pg_class c ON c.oid = l.relation AND c.relnamespace = 'public'::regnamespace
 WHERE a.datname = current_database() AND a.pid <> pg_backend_pid()
   AND a.xact_start < clock_timestamp() - make_interval(secs => %s)
"""
_TARGETS = ("app_label", "migration_name")


class AtomicExecutor(MigrationExecutor):
    """Applies a migration and its record in one transaction, so that a killed process leaves both
    or neither. A migration with `atomic = False` must be repeatable.
    """

    def apply_migration(self, state: Any, migration: Any, *args: Any, **options: Any) -> Any:
        if not options.get("fake_initial"):  # which looks at each operation
            migration = _with_groups(migration)
        with self._atomic(migration):
            return super().apply_migration(state, migration, *args, **options)

    def unapply_migration(self, state: Any, migration: Any, *args: Any, **options: Any) -> Any:
        with self._atomic(migration):
            return super().unapply_migration(state, migration, *args, **options)

    def _migrate_all_backwards(self, plan: Any, full_plan: Any, fake: Any) -> Any:
        """Revert in groups; also the states before each migration are computed by them."""
        in_groups = (
            [(_with_groups(m, back=True), b) for m, b in each] for each in (plan, full_plan)
        )
        return super()._migrate_all_backwards(*in_groups, fake)

    def _atomic(self, migration: Any) -> Any:
        return transaction.atomic(self.connection.alias) if migration.atomic else nullcontext()


def _with_groups(migration: Any, *, back: bool = False) -> Any:
    """Return a copy of a migration with groups of its operations, if it is one transaction."""
    if not migration.atomic:
        return migration
    copied = copy(migration)
    copied.operations = list(grouped(migration.operations, back=back))
    return copied


migrate.MigrationExecutor = AtomicExecutor  # which Django's command creates


class Command(migrate.Command):
    requires_system_checks = (Tags.database,)  # those of the routes would load the whole API

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        half = parser.add_mutually_exclusive_group()
        half.add_argument(
            "--pre",
            action="store_true",
            help="apply the first half of this release, before its processes start; processes of"
            " the previous release go on working",
        )
        half.add_argument(
            "--back",
            choices=("post", "all"),
            help="revert the second half of this release, so that the previous release can start"
            " (post), or all of this release, when none of its processes is left (all)",
        )

    def execute(self, *args: Any, **options: Any) -> Any:
        """Check that the database answers, before Django's checks query it."""
        require_database()
        require_answer()
        return super().execute(*args, **options)

    def handle(self, *args: Any, **options: Any) -> None:
        connection = connections[options["database"]]
        ours = schema.migrations()
        if options["app_label"] and (options["pre"] or options["back"]):
            raise CommandError("--pre and --back apply to all apps; leave out the app.")
        with self._alone(connection):
            self._check(connection, ours, note=not (options["plan"] or options["check_unapplied"]))
            if options["pre"] or options["back"]:
                for target in self._targets(connection, ours, options["back"] or ""):
                    self._retry(*args, **{**options, **dict(zip(_TARGETS, target, strict=True))})
            else:
                self._retry(*args, **options)

    @contextmanager
    def _alone(self, connection: BaseDatabaseWrapper) -> Iterator[None]:
        """Make sure that one process migrates at a time, and waits only briefly for table locks."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_lock(%s)", [schema.LOCK])
            if not cursor.fetchone()[0]:
                self.stdout.write("Another process migrates this database: waiting for it to end.")
                self.stdout.flush()
                cursor.execute("SELECT pg_advisory_lock(%s)", [schema.LOCK])
            cursor.execute(f"SET lock_timeout = {limits.MIGRATE_LOCK_MS_MAX}")
            idle = f"'{limits.MIGRATE_IDLE_S_MAX}s'"
            cursor.execute(f"SET idle_in_transaction_session_timeout = {idle}")
            try:
                yield
            finally:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [schema.LOCK])
                cursor.execute("RESET lock_timeout")
                cursor.execute("RESET idle_in_transaction_session_timeout")

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
        """Yield each app that is not at its target migration, with it."""
        loader = MigrationExecutor(connection).loader
        graph, applied = loader.graph, loader.applied_migrations
        leaves = graph.leaf_nodes()
        if back and not any(MigrationName(*node) in ours for node in applied):
            self.stdout.write("This database has no tables of a hub: there is nothing to revert.")
            return
        plan = dict.fromkeys(node for leaf in leaves for node in graph.forwards_plan(leaf))
        held: set[tuple[str, str]] = set()  # with all that depends on them
        for node in plan:
            needs_held = any(parent.key in held for parent in graph.node_map[node].parents)
            form = ours.get(MigrationName(*node))
            if needs_held or (form and _is_held(form, back, is_applied=node in applied)):
                held.add(node)
        if not back and applied.keys() >= plan.keys() - held:
            self.stdout.write("The first half of this release is applied already.")
        for app, leaf in leaves:
            if back and (app, leaf) not in held:
                continue
            names = [name for label, name in plan if label == app and (label, name) not in held]
            if not names:
                raise CommandError(f"{VERSION} is the first release; none precedes it.")
            if back or any((app, name) not in applied for name in names):
                yield app, names[-1]

    def _retry(self, *args: Any, **options: Any) -> None:
        """Migrate, with short waits for locks that are repeated: a session that waits for a table
        lock blocks all later ones. Migrations applied so far stay.
        """
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
                        f"A table was in use for {limits.MIGRATE_S_MAX:.0f} s; migrations applied"
                        " so far stay. Try again when long queries have ended."
                    ) from error
            self.stdout.write(f"  a table is in use{_holders(connection)}: retrying")
            self.stdout.flush()
            time.sleep(random.uniform(*limits.MIGRATE_PAUSE_S))  # noqa: S311 - no secret


def _is_held(form: MigrationForm, back: str, *, is_applied: bool) -> bool:
    """Return whether a migration is left out, or reverted."""
    if not back:
        return form.half == "post" and not is_applied
    return schema.is_of_this_release(form) and (back == "all" or form.half == "post")


def _holders(connection: BaseDatabaseWrapper) -> str:
    """Describe the sessions that hold table locks for longer than a migration waits."""
    with connection.cursor() as cursor:
        cursor.execute(_HOLDERS, [limits.MIGRATE_LOCK_MS_MAX / 1_000])
        found = [f"{name or 'a session'} (pid {pid})" for name, pid in cursor.fetchall()]
    return f" by {', '.join(found)}" if found else ""
