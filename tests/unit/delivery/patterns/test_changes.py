"""Changes of a group's patterns at barriers: what is due when."""

from delivery.patterns.changes import PendingChanges
from delivery.patterns.group_tables import StoredPatternVersion
from eventhub.eventlog.stored import Cursor


def version(
    id: int, since: tuple[int, int], until: tuple[int, int] | None = None, **more: bool
) -> StoredPatternVersion:
    """Return a version; the barrier of a change is numbered by its first sequence."""
    return StoredPatternVersion(
        id=id,
        pattern=id,
        name="",
        number=1,
        language="ready",
        text="",
        once=False,
        recent=False,
        suspended=more.get("suspended", False),
        since=since[0],
        until=None if until is None else until[0],
        since_sequences=[*since],
        until_sequences=None if until is None else [*until],
    )


def cursors(one: int, two: int) -> dict[int, Cursor]:
    return {1: Cursor("s", one), 2: Cursor("s", two)}


def test_a_change_is_due_when_every_stream_is_consumed_up_to_it() -> None:
    changes = PendingChanges([1, 2])
    changes.take([version(1, (5, 3), (7, 3)), version(2, (7, 3))], {}, cursors(4, 3))
    first = changes.next
    assert first is not None
    assert (first.barrier, first.sequences) == (5, {1: 5, 2: 3})
    assert ([one.id for one in first.added], first.removed) == ([1], [])
    assert not first.is_reached(cursors(4, 9))
    assert first.is_reached(cursors(5, 3))
    assert first.is_reached({1: Cursor("s", 5)})  # the other stream has ended
    changes.applied(first)
    second = changes.next
    assert second is not None
    assert ([one.id for one in second.added], second.removed) == ([2], [1])
    changes.applied(second)
    assert (changes.next, changes.loaded) == (None, 7)


def test_what_is_known_or_over_or_suspended_is_no_change() -> None:
    changes = PendingChanges([1, 2])
    found = [
        version(1, (5, 3)),  # the engines have it
        version(2, (5, 3), (6, 3)),  # ended before
        version(3, (5, 3), suspended=True),
    ]
    changes.take(found, {1: None}, cursors(6, 3))
    assert changes.next is None
    changes.take([version(1, (5, 3), (9, 3))], {1: None}, cursors(6, 3))
    assert changes.next is not None
    assert (changes.next.barrier, changes.next.removed) == (9, [1])


def test_a_version_that_is_read_twice_is_added_once() -> None:
    changes = PendingChanges([1, 2])
    changes.take([version(1, (5, 3))], {}, cursors(4, 3))
    changes.take([version(1, (5, 3), (6, 3))], {}, cursors(4, 3))
    assert changes.next is not None
    assert [one.id for one in changes.next.added] == [1]
