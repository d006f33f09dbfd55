"""Which group gives way when the groups of a process hold too much."""

import pytest

from delivery.patterns.memory import GroupMemory
from eventhub.base import limits


@pytest.fixture(autouse=True)
def _hundred_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PATTERN_PROCESS_BYTES_MAX", 100)


def test_within_the_limit_no_group_gives_way() -> None:
    memory = GroupMemory()
    assert not memory.report(1, 1, 60)
    assert not memory.report(2, 2, 40)
    assert memory.bytes == 100


def test_the_largest_group_of_the_client_with_the_most_gives_way() -> None:
    """Not the largest group: a client could have many small ones."""
    memory = GroupMemory()
    memory.report(1, client=1, size=40)
    memory.report(2, client=2, size=15)
    memory.report(3, client=2, size=25)
    assert not memory.report(4, client=2, size=21)
    assert not memory.report(1, client=1, size=40)
    assert memory.report(3, client=2, size=25)


def test_a_group_that_left_holds_nothing() -> None:
    memory = GroupMemory()
    memory.report(1, 1, 90)
    memory.forget(1)
    assert not memory.report(2, 2, 20)
    assert memory.bytes == 20
