"""Operations of a migration are grouped only where none concerns another."""

import pytest
from django.db import models
from django.db.migrations import (
    AddConstraint,
    AddField,
    AddIndex,
    AlterField,
    CreateModel,
    RemoveConstraint,
    RenameField,
    RunPython,
)
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ModelState, ProjectState

from eventhub.management.grouped import OperationGroup, grouped

KEY = ("id", models.BigAutoField(primary_key=True))
ORDER, ITEM = CreateModel("Order", [KEY]), CreateModel("Item", [KEY])
NOTE = AddField("order", "note", models.TextField())
LONGER = AlterField("order", "note", models.CharField(max_length=9))
OWNER = AddField("order", "owner", models.ForeignKey("Item", models.CASCADE))
OTHER_KEY = AlterField("order", "id", models.UUIDField(primary_key=True))
CHECK = AddConstraint("order", models.CheckConstraint(condition=models.Q(id__gt=0), name="known"))
NO_CHECK = RemoveConstraint("order", "known")
INDEX = AddIndex("order", models.Index(fields=["note"], name="by_note"))
RENAMED = RenameField("order", "note", "text")
PYTHON = RunPython(RunPython.noop)


class AddConstraintNotChecked(AddConstraint):
    """An operation with other statements than Django's."""


UNKNOWN = AddConstraintNotChecked("order", CHECK.constraint)


@pytest.mark.parametrize(
    ("operations", "sizes"),
    [
        ([ORDER], [1]),
        ([ORDER, ITEM], [2]),
        ([ORDER, ITEM, NOTE, OWNER], [2, 2]),  # a table is created before it is changed
        ([NOTE, OWNER, CHECK, INDEX], [4]),
        ([NOTE, LONGER, INDEX], [1, 2]),
        ([NO_CHECK, CHECK], [1, 1]),
        ([NOTE, OTHER_KEY, OWNER], [1, 1, 1]),
        ([NOTE, RENAMED, INDEX], [1, 1, 1]),
        ([ORDER, PYTHON, ITEM], [1, 1, 1]),
        ([NOTE, OWNER, UNKNOWN], [2, 1]),
        ([], []),
    ],
)
def test_only_operations_that_do_not_concern_each_other_are_grouped(
    operations: list[Operation], sizes: list[int]
) -> None:
    found = list(grouped(operations))
    flat = [each.operations if isinstance(each, OperationGroup) else [each] for each in found]
    assert [len(each) for each in flat] == sizes
    assert [operation for each in flat for operation in each] == operations


def test_constraints_are_reverted_one_by_one() -> None:
    """Without the fields that a constraint names it could not be dropped."""
    assert [type(each) for each in grouped([NOTE, OWNER, CHECK, INDEX], back=True)] == [
        OperationGroup,
        AddConstraint,
        AddIndex,
    ]


def test_a_group_is_reversible_if_all_its_operations_are() -> None:
    assert OperationGroup([NOTE, OWNER]).reversible
    assert not OperationGroup([NOTE, RunPython(RunPython.noop)]).reversible


def test_a_group_leaves_the_models_that_its_operations_leave() -> None:
    state = ProjectState()
    state.add_model(ModelState("shop", "Order", [KEY]))
    state.add_model(ModelState("shop", "Item", [KEY]))
    before = state.apps.get_model("shop", "Item")
    OperationGroup([NOTE, OWNER, INDEX]).state_forwards("shop", state)
    order = state.apps.get_model("shop", "Order")
    assert [field.name for field in order._meta.get_fields()] == ["id", "note", "owner"]
    item = state.apps.get_model("shop", "Item")
    assert item is not before  # rendered again, with the relation
    assert [each.related_model for each in item._meta.related_objects] == [order]
    state.reload_model("shop", "order")  # Django's own again
    assert state.apps.get_model("shop", "Order") is not order
