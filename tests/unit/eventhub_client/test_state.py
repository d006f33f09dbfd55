"""Folding a keyed stream's snapshot and events, without a connection."""

from typing import Any

from eventhub_client.state import Fold
from eventhub_client.types import Cursor, Delivered, Snapshot, StateItem

S1 = "5a4f0c0e-0000-4000-8000-000000000001"


def event(sequence: int, key: str = "", **fields: Any) -> Delivered:
    named = {"key": key} if key else {}
    return Delivered(S1, sequence, sequence - 1, "live", {**named, **fields})


def snapshot(sequence: int, **items: int) -> Snapshot:
    held = tuple(StateItem(key, S1, n, {"key": key}) for key, n in items.items())
    return Snapshot(held, Cursor(S1, sequence))


def fold(*items: Any) -> tuple[dict[str, int], int]:
    made = Fold()
    for item in items:
        made.take(item)
    assert made.cursor is not None
    return {key: item.sequence for key, item in made.items.items()}, made.cursor.sequence


def test_events_replace_and_tombstones_remove() -> None:
    begin = snapshot(5, a=3, b=5)
    assert fold(begin, event(6, "a"), event(7), event(8, "c")) == ({"a": 6, "b": 5, "c": 8}, 8)
    assert fold(begin, event(6, "a", tombstone=True)) == ({"b": 5}, 6)
    assert fold(begin, event(6, "x", tombstone=True)) == ({"a": 3, "b": 5}, 6)


def test_a_snapshot_after_a_gap_replaces_everything() -> None:
    found = fold(snapshot(5, a=3, b=5), event(6, "c"), snapshot(40, b=30), event(41, "d"))
    assert found == ({"b": 30, "d": 41}, 41)
