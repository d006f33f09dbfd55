"""Thresholds that decide each other: if `(> x 3)` fails, `(> x 7)` fails; if `(> x 7)` holds,
`(> x 3)` holds (OIF-28). Plain module.

Only comparisons with numbers have this order. A list, like a single value, that passes one
threshold passes all lower ones.
"""

from bisect import bisect_left, insort
from typing import NamedTuple

from registrations.filters.ast import FLIPPED, Compare, Const, Node, Operand
from registrations.matching.conditions import Condition

Side = tuple[Operand, bool]  # the compared operand, and whether it is a lower bound
Strength = tuple[float, bool]  # the greater it is, the fewer values pass


class Threshold(NamedTuple):
    """A comparison with a number."""

    side: Side
    strength: Strength


def threshold_of(node: Node) -> Threshold | None:
    """Return the threshold of a test; None if it is not one."""
    match node:
        case Compare(op, Const() as left, right):
            node = Compare(FLIPPED[op], right, left)
    match node:
        case Compare(_, _, Const(bool())):
            return None
        case Compare(">" | ">=" as op, operand, Const(int() | float() as value)):
            return Threshold((operand, True), (value, op == ">"))
        case Compare("<" | "<=" as op, operand, Const(int() | float() as value)):
            return Threshold((operand, False), (-value, op == "<"))
    return None


class ThresholdOrder:
    """The thresholds of a program, for each side sorted by strength."""

    def __init__(self) -> None:
        self.thresholds: dict[Condition, Threshold] = {}
        self._sides: dict[Side, list[Condition]] = {}

    def add(self, test: Condition) -> None:
        """Add a test if it is a threshold."""
        threshold = threshold_of(test.node)
        if threshold is None:
            return
        self.thresholds[test] = threshold
        insort(self._sides.setdefault(threshold.side, []), test, key=self._strength_of)

    def remove(self, test: Condition) -> None:
        threshold = self.thresholds.get(test)
        if threshold is None:
            return
        tests = self._sides[threshold.side]
        at = bisect_left(tests, threshold.strength, key=self._strength_of)
        del tests[tests.index(test, at)]
        del self.thresholds[test]
        if not tests:
            del self._sides[threshold.side]

    def weakest(self, side: Side) -> Condition:
        """Return the test that holds if any of its side does."""
        return self._sides[side][0]

    def __len__(self) -> int:
        return len(self._sides)

    def _strength_of(self, test: Condition) -> Strength:
        return self.thresholds[test].strength
