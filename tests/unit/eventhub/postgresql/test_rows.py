"""Which columns make a row of a kind."""

from typing import NamedTuple

import pytest

from eventhub.postgresql.rows import columns_of, differences


class Place(NamedTuple):
    segment: str
    sequence: int


class Head(NamedTuple):
    stream_id: int
    place: Place
    last: Place | None


class Known(Head):
    """One with more methods."""

    __slots__ = ()


@pytest.mark.parametrize("kind", [Head, Known])
def test_a_field_that_is_a_named_tuple_is_made_of_its_own_columns(kind: type[Head]) -> None:
    assert columns_of(kind) == ["stream_id", "segment", "sequence", "last"]


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        (["segment", "sequence"], ""),
        (["sequence", "segment"], ""),
        (["segment"], "no column sequence"),
        (["segment", "sequence", "first", "last"], "no field first, last"),
        (["segment", "segment", "sequence"], "more than one segment"),
        (["?column?", "segment"], "no column sequence; no field ?column?"),
    ],
)
def test_columns_and_fields_are_compared_by_name(columns: list[str], told: str) -> None:
    assert differences(Place, columns) == told
