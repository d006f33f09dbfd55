"""What Django's models leave out of PostgreSQL's tables: how one is stored, types of columns.
Django module.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState


class Storage(NamedTuple):
    """How a model's table is stored: its attribute `storage`, from which `makemigrations` makes
    `CreateTable`.
    """

    partition_by: str = ""  # such as RANGE (at)
    unlogged: bool = False
    parameters: Mapping[str, float] = {}  # as in CREATE TABLE ... WITH
    external: tuple[str, ...] = ()  # columns whose long values are not compressed

    def kwargs(self) -> dict[str, Any]:
        """Of `CreateTable`: what is not as usual."""
        usual = Storage()._asdict()
        return {name: value for name, value in self._asdict().items() if value != usual[name]}


class CreateTable(migrations.CreateModel):
    """Make a model's table, stored as `Storage` says."""

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
        self.storage = Storage(**storage)

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        name, args, kwargs = super().deconstruct()
        return name, args, {**kwargs, "storage": self.storage.kwargs()}

    def reduce(self, operation: Operation, app_label: str) -> Any:
        """Merged with what changes the model, it is still stored so."""
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


def with_storage(operation: migrations.CreateModel, storage: Storage) -> CreateTable:
    """The same, stored so."""
    _, args, kwargs = operation.deconstruct()
    return CreateTable(*args, **kwargs, storage=storage.kwargs())


def create_table(
    schema_editor: BaseDatabaseSchemaEditor, model: type[models.Model], storage: Storage
) -> None:
    """Make the table of a model, with its indexes and comments."""
    with _stored(schema_editor, storage):
        schema_editor.create_model(model)
    for column in storage.external:
        table = schema_editor.quote_name(model._meta.db_table)
        schema_editor.execute(f"ALTER TABLE {table} ALTER COLUMN {column} SET STORAGE EXTERNAL")


@contextmanager
def _stored(schema_editor: BaseDatabaseSchemaEditor, storage: Storage) -> Iterator[None]:
    """The tables that the editor makes meanwhile are stored so."""
    usual = schema_editor.table_sql

    def table_sql(model: type[models.Model]) -> tuple[str, Any]:
        text, params = usual(model)
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
        schema_editor.table_sql = usual


class _Typed(models.Field):
    """A column of a type that Django has no field for."""

    column_type: str

    def db_type(self, connection: Any) -> str:
        return self.column_type


class JsonTextField(models.JSONField):
    """JSON as it was written; jsonb would refuse \\u0000."""

    def db_type(self, connection: Any) -> str:
        return "json"

    def from_db_value(self, value: Any, *_: Any) -> Any:
        """The driver has read it, as it does with json, not with jsonb."""
        return value


class Xid8Field(_Typed):
    """The id of a transaction."""

    column_type = "xid8"


class XidField(_Typed):
    """The id of a transaction, as a row's xmin has it."""

    column_type = "xid"


class OidField(_Typed):
    """The number of something of the database itself."""

    column_type = "oid"


class MultirangeField(_Typed):
    """Ranges of bigint."""

    column_type = "int8multirange"


class CurrentXid(models.Func):
    """The id of this transaction."""

    function = "pg_current_xact_id"
    output_field = Xid8Field()
