"""The columns that a NamedTuple is built from."""

from typing import NamedTuple

import pytest

from eventhub.postgresql.rows import columns_of, differences


class Position(NamedTuple):
    segment: str
    sequence: int


class Head(NamedTuple):
    stream_id: int
    position: Position
    last: Position | None


class HeadWithMethods(Head):
    """A subclass without further fields."""

    __slots__ = ()


@pytest.mark.parametrize("kind", [Head, HeadWithMethods])
def test_a_field_that_is_a_named_tuple_is_built_from_its_own_columns(kind: type[Head]) -> None:
    assert columns_of(kind) == ["stream_id", "segment", "sequence", "last"]


@pytest.mark.parametrize(
    ("columns", "difference"),
    [
        (["segment", "sequence"], ""),
        (["sequence", "segment"], ""),
        (["segment"], "no column sequence"),
        (["segment", "sequence", "first", "last"], "no field first, last"),
        (["segment", "segment", "sequence"], "more than one segment"),
        (["?column?", "segment"], "no column sequence; no field ?column?"),
    ],
)
def test_columns_and_fields_are_compared_by_name(columns: list[str], difference: str) -> None:
    assert differences(Position, columns) == difference
