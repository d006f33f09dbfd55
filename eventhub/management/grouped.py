"""Groups of operations of a migration that are applied between two states of the models, so that
the models are rendered once for each group. Django module.

Django renders every model that hangs together with a changed one after each operation. All tables
of the hub hang together, so that was three quarters of the time of the first `migrate`.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django.db import migrations
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

from eventhub.postgresql.tables import CreateTable

_GROUPED = {
    migrations.AddConstraint,
    migrations.AddField,
    migrations.AddIndex,
    migrations.AlterField,
    migrations.CreateModel,
    migrations.RemoveConstraint,
    CreateTable,
}
_CONSTRAINTS = (migrations.AddConstraint, migrations.RemoveConstraint)


class OperationGroup(Operation):
    """Operations that do not concern each other: each may see the models as they are before the
    first and after the last one.
    """

    def __init__(self, operations: list[Operation]) -> None:
        self.operations = operations
        self.reversible = all(each.reversible for each in operations)

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        with _rendered_once(state):
            for each in self.operations:
                each.state_forwards(app_label, state)

    def database_forwards(self, app_label: str, *states: Any) -> None:
        for each in self.operations:
            each.database_forwards(app_label, *states)

    def database_backwards(self, app_label: str, *states: Any) -> None:
        for each in reversed(self.operations):
            each.database_backwards(app_label, *states)


def grouped(operations: Iterable[Operation], *, back: bool = False) -> Iterator[Operation]:
    """Yield the operations in their order, with consecutive ones in groups: new models, and changes
    of different fields, indexes and constraints. Others stay single. To revert them (`back`),
    constraints stay single, too: one is dropped by the model with the fields that it names.
    """
    group: dict[tuple[str, str], Operation] = {}  # by model and name in it
    for each in operations:
        target = None if back and isinstance(each, _CONSTRAINTS) else _target(each)
        if target is None or target in group or (target[0], "") in group:
            yield from _as_one(group)
            group = {}
        if target is None:
            yield each
        else:
            group[target] = each
    yield from _as_one(group)


def _as_one(group: Mapping[tuple[str, str], Operation]) -> list[Operation]:
    found = list(group.values())
    return [OperationGroup(found)] if len(found) > 1 else found


def _target(operation: Operation) -> tuple[str, str] | None:
    """Return the model and the name in it that an operation creates or changes, None if it may
    concern more: a changed key, for example, changes the columns that refer to it.
    """
    if type(operation) not in _GROUPED:
        return None
    match operation:
        case migrations.CreateModel():
            return operation.name_lower, ""
        case migrations.AlterField(field=field) if field.unique:
            return None
        case migrations.AddIndex(index=added) | migrations.AddConstraint(constraint=added):
            return operation.model_name_lower, added.name
    return operation.model_name_lower, operation.name


@contextmanager
def _rendered_once(state: ProjectState) -> Iterator[None]:
    """Render the models that the block changes at its end, each once."""
    changed = set()
    delays = set()

    def note(app_label: str, model_name: str, delay: bool = False) -> None:
        changed.add((app_label, model_name))
        delays.add(delay)

    state.reload_model = note
    try:
        yield
    finally:
        del state.reload_model
    # only a change of a relation concerns models that are related indirectly
    state.reload_models(changed, delay=False not in delays)
