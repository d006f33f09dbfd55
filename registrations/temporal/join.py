"""One event of a temporal pattern: its memory, and the combinations that wait for it. Plain
module.
"""

from collections.abc import Callable, Generator, Iterator
from typing import TypeVar

from registrations.temporal.compiled_tests import Slot
from registrations.temporal.entries import AlphaMemory, Entry, Key, key_getter
from registrations.temporal.plan import JoinPlan

Found = TypeVar("Found")
Combination = tuple[Entry, ...]  # of the first events of the plan


class Join:
    """One event of the plan with its memory. `entries`: its index for the combinations before it;
    `key_of_entry` and `key_of`: the key of either side. `number`: the registration's, then its own.
    """

    def __init__(self, plan: JoinPlan, alpha: AlphaMemory, number: tuple[int, int]) -> None:
        self.alpha = alpha
        self.check = plan.check
        self.number = number
        self.entries = alpha.index(plan.own)
        self.key_of_entry = key_getter(plan.own)
        self.key_of = _combination_key(plan.earlier)
        self.waiting: dict[Key, dict[Combination, None]] = {}  # combinations that it may join

    def wait(self, key: Key, combination: Combination) -> None:
        """Have a combination wait for an event."""
        if not self.waiting:
            self.alpha.waiting.add(self.number)
        self.waiting.setdefault(key, {})[combination] = None

    def end_wait(self, combination: Combination) -> None:
        """Remove a combination that waits."""
        key = self.key_of(combination)
        listed = self.waiting[key]
        del listed[combination]
        if not listed:
            del self.waiting[key]
        if not self.waiting:
            self.alpha.waiting.discard(self.number)

    def clear(self) -> None:
        """Remove all combinations that wait."""
        self.waiting.clear()
        self.alpha.waiting.discard(self.number)


def oldest_of(combination: Combination) -> int:
    """Return the index of the event that leaves the memory first."""
    return min(entry.index for entry in combination)


def _combination_key(slots: tuple[Slot, ...]) -> Callable[[Combination], Key]:
    """Return a function that returns the values of a combination as `key_getter` does."""
    if len(slots) == 1:
        ((level, field),) = slots
        return lambda combination: combination[level].keys[field]
    return lambda combination: tuple(combination[level].keys[field] for level, field in slots)


def exhaust(steps: Iterator[None]) -> None:
    """Take all steps at once."""
    for _ in steps:
        pass


def result_of(steps: Generator[None, None, Found]) -> Found:
    """Take all steps at once; return what they return."""
    while True:
        try:
            next(steps)
        except StopIteration as ended:
            found: Found = ended.value
            return found
