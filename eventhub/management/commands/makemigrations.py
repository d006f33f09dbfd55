"""`manage.py makemigrations`: Django's command, with columns in the order of their models, the
models' storage options, and the release in each migration. Django module.
"""

from collections.abc import Iterator, Sequence
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

from django.apps import apps
from django.core.management.commands import makemigrations
from django.db.migrations import AddConstraint, AddField, AddIndex, CreateModel
from django.db.migrations.operations.base import Operation
from django.db.migrations.writer import MigrationWriter

from eventhub.base.version import VERSION
from eventhub.postgresql import schema
from eventhub.postgresql.migration_forms import KNOWN
from eventhub.postgresql.tables import with_storage


class Command(makemigrations.Command):
    def write_migration_files(self, changes: Any, *args: Any, **kwargs: Any) -> None:
        for app_label, migrations in changes.items():
            for migration in migrations:
                ordered = _ordered(app_label, migration.operations)
                migration.operations = [_stored(app_label, each) for each in ordered]
        super().write_migration_files(changes, *args, **kwargs)
        written = [] if self.dry_run else [each for some in changes.values() for each in some]
        for migration in written:
            file = Path(MigrationWriter(migration).path)
            head, line, tail = file.read_text().partition("(migrations.Migration):\n")
            file.write_text(f'{head}{line}    release = "{VERSION}"\n{tail}')
        if written:
            KNOWN.write_text(schema.forms_text())


def _ordered(app_label: str, operations: Sequence[Operation]) -> Iterator[Operation]:
    """Yield new models in the order of their foreign keys, each complete; then the rest."""
    created = {each.name_lower: each for each in operations if isinstance(each, CreateModel)}
    rest = [each for each in operations if not isinstance(each, CreateModel)]
    rest = [each for each in rest if not _merge(created.get(_model(each)), each)]
    needs: TopologicalSorter[str] = TopologicalSorter()
    for name, operation in created.items():
        model = apps.get_model(app_label, name)
        order = [field.name for field in (*model._meta.private_fields, *model._meta.fields)]
        operation.fields.sort(key=lambda field: order.index(field[0]))
        others = (field.related_model for field in model._meta.fields if field.is_relation)
        needs.add(name, *(other._meta.model_name for other in others
                          if other._meta.app_label == app_label))  # fmt: skip
    yield from (created[name] for name in needs.static_order() if name in created)
    yield from rest


def _model(operation: Operation) -> str:
    return str(getattr(operation, "model_name_lower", ""))


def _merge(model: CreateModel | None, operation: Operation) -> bool:
    """Merge an operation into the creation of its model, if that is new; return whether it was."""
    match operation:
        case _ if model is None:
            return False
        case AddField():
            model.fields.append((operation.name, operation.field))
        case AddIndex():
            model.options.setdefault("indexes", []).append(operation.index)
        case AddConstraint():
            model.options.setdefault("constraints", []).append(operation.constraint)
        case _:
            return False
    return True


def _stored(app_label: str, operation: Operation) -> Operation:
    if type(operation) is not CreateModel:
        return operation
    storage = getattr(apps.get_model(app_label, operation.name), "storage", None)
    return with_storage(operation, storage) if storage else operation
