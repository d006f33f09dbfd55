"""Features of PostgreSQL's tables that Django's models lack: storage options and column types.
Django module.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState


class TableStorage(NamedTuple):
    """The storage options of a model's table: the model's attribute `storage`, which
    `makemigrations` writes into `CreateTable`.
    """

    partition_by: str = ""  # such as RANGE (at)
    unlogged: bool = False
    parameters: Mapping[str, float] = {}  # as in CREATE TABLE ... WITH
    external: tuple[str, ...] = ()  # columns whose long values are not compressed

    def kwargs(self) -> dict[str, Any]:
        """Return the arguments of `CreateTable` that are not the defaults."""
        default = TableStorage()._asdict()
        return {name: value for name, value in self._asdict().items() if value != default[name]}


class CreateTable(migrations.CreateModel):
    """Creates a model's table with the options of `TableStorage`."""

    def __init__(
        self,
        name: str,
        fields: Any,
        options: Any = None,
        bases: Any = None,
        *,
        storage: Mapping[str, Any],
    ) -> None:
        super().__init__(name, fields, options, bases)
        self.storage = TableStorage(**storage)

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        name, args, kwargs = super().deconstruct()
        return name, args, {**kwargs, "storage": self.storage.kwargs()}

    def reduce(self, operation: Operation, app_label: str) -> Any:
        """Merge with an operation that changes the model, and retain the storage options."""
        found = super().reduce(operation, app_label)
        if not isinstance(found, list):
            return found
        return [
            with_storage(each, self.storage) if type(each) is migrations.CreateModel else each
            for each in found
        ]

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        model = to_state.apps.get_model(app_label, self.name)
        if self.allow_migrate_model(schema_editor.connection.alias, model):
            create_table(schema_editor, model, self.storage)


def with_storage(operation: migrations.CreateModel, storage: TableStorage) -> CreateTable:
    """Return the operation with storage options."""
    _, args, kwargs = operation.deconstruct()
    return CreateTable(*args, **kwargs, storage=storage.kwargs())


def create_table(
    schema_editor: BaseDatabaseSchemaEditor, model: type[models.Model], storage: TableStorage
) -> None:
    """Create the table of a model, with its indexes and comments."""
    with _stored(schema_editor, storage):
        schema_editor.create_model(model)
    for column in storage.external:
        table = schema_editor.quote_name(model._meta.db_table)
        schema_editor.execute(f"ALTER TABLE {table} ALTER COLUMN {column} SET STORAGE EXTERNAL")


@contextmanager
def _stored(schema_editor: BaseDatabaseSchemaEditor, storage: TableStorage) -> Iterator[None]:
    """Apply storage options to the tables that the editor creates in the block."""
    original = schema_editor.table_sql

    def table_sql(model: type[models.Model]) -> tuple[str, Any]:
        text, params = original(model)
        if storage.unlogged:
            text = text.replace("CREATE TABLE", "CREATE UNLOGGED TABLE", 1)
        if storage.partition_by:
            text += f" PARTITION BY {storage.partition_by}"
        if storage.parameters:
            values = ", ".join(f"{name} = {value}" for name, value in storage.parameters.items())
            text += f" WITH ({values})"
        return text, params

    schema_editor.table_sql = table_sql
    try:
        yield
    finally:
        schema_editor.table_sql = original


class LiveManager(models.Manager):
    """Manager of rows that are deleted by setting `deleted_at`."""

    def live(self) -> models.QuerySet:
        """Return the rows that are not deleted."""
        return self.filter(deleted_at__isnull=True)


class Reference(models.ForeignKey):
    """A foreign key without constraint and index, of a row that may outlive the one it names or
    is written too often for either.
    """

    def __init__(self, to: Any, **options: Any) -> None:
        super().__init__(to, models.DO_NOTHING, db_constraint=False, db_index=False, **options)

    def deconstruct(self) -> tuple[str, str, list[Any], dict[str, Any]]:
        name, path, args, options = super().deconstruct()
        for implied in ("on_delete", "db_constraint", "db_index"):
            options.pop(implied)
        return name, path, args, options


class _TypedField(models.Field):
    """A column of a type that Django has no field for."""

    column_type: str

    def db_type(self, connection: Any) -> str:
        return self.column_type


class JsonTextField(models.JSONField):
    """JSON in its original text; jsonb would refuse \\u0000."""

    def db_type(self, connection: Any) -> str:
        return "json"

    def from_db_value(self, value: Any, *_: Any) -> Any:
        """Return the value unchanged: unlike jsonb, the driver has parsed it."""
        return value


class Xid8Field(_TypedField):
    """The id of a transaction."""

    column_type = "xid8"


class XidField(_TypedField):
    """The id of a transaction, as in a row's xmin."""

    column_type = "xid"


class OidField(_TypedField):
    """The oid of an object of the database."""

    column_type = "oid"


class MultirangeField(_TypedField):
    """Ranges of bigint."""

    column_type = "int8multirange"


class CurrentXid(models.Func):
    """The id of this transaction."""

    function = "pg_current_xact_id"
    output_field = Xid8Field()
