"""What a pattern waits for, as a tree of its parts, for people (RDY-46). Plain module."""

from collections.abc import Mapping
from typing import NamedTuple

from registrations.patterns.actions import outer
from registrations.patterns.candidates import (
    Candidates,
    Found,
    StepsExceeded,
    bindings_of,
    unpaused,
)
from registrations.patterns.partition import PatternPartition, first
from registrations.patterns.pattern_engine import Bound, EventPosition, Waiting
from registrations.patterns.plan import Plan, PlannedPart
from registrations.patterns.printed import part_text
from registrations.patterns.search import ButNotNode, ThenNode
from registrations.patterns.values import BoundEvent


class _View(NamedTuple):
    """The events of a partition that are in the window now."""

    candidates: Candidates
    by_order: dict[int, BoundEvent]
    newest: int
    within_us: int


def waiting_of(plan: Plan, partition: PatternPartition, now_us: int) -> Waiting:
    """Return the parts of a pattern with what is matched of them in a partition.

    A part that matched shows its preferred match of now; an event that comes may be bound instead.
    """
    oldest_us = now_us - plan.within_us
    events = [[one for one in taken if one.time_us >= oldest_us] for taken in partition.events]
    by_order = {one.order: one for one in partition.taken if one.time_us >= oldest_us}
    view = _View(Candidates(events), by_order, max(by_order, default=0), plan.within_us)
    return _waiting(plan.tree, view, 0)


def _waiting(tree: PlannedPart, view: _View, start: int | None) -> Waiting:
    """Return a part that started after an event (0: at the beginning of the window; None: not)."""
    text = part_text(tree.part)
    if start is None:
        children = tuple(_waiting(inner, view, None) for inner in tree.inner)
        return Waiting(text, "inactive", None, None, {}, children)
    found = _match(tree, view, start)
    children = tuple(_waiting(inner, view, one) for inner, one in _starts(tree, view, start))
    status = "matched" if found else "failed" if _has_failed(tree, view, start) else "waiting"
    bound: dict[str, Bound] = {}
    if found:
        bound = {name: outer(one) for name, one in bindings_of(view.candidates, found).items()}
    elif status == "waiting":
        for child in children:
            bound |= child.bound
    since = view.by_order.get(start)
    position = None if since is None else since.position
    return Waiting(text, status, position, _expiry(bound, view), bound, children)


def _match(tree: PlannedPart, view: _View, start: int) -> Found | None:
    try:
        matches = tree.node.matches(view.candidates, start, view.newest, exact=False)
        return unpaused(first(matches))
    except StepsExceeded:
        return None


def _starts(tree: PlannedPart, view: _View, start: int) -> list[tuple[PlannedPart, int | None]]:
    if isinstance(tree.node, ThenNode):
        left, right = tree.inner
        found = _match(left, view, start)
        return [(left, start), (right, found.end if found else None)]
    return [(inner, start) for inner in tree.inner]


def _has_failed(tree: PlannedPart, view: _View, start: int) -> bool:
    node = tree.node
    if not isinstance(node, ButNotNode):
        return False
    try:
        failed = unpaused(node.right.earliest(view.candidates, start, view.newest))
    except StepsExceeded:
        return False
    return failed is not None


def _expiry(bound: Mapping[str, Bound], view: _View) -> int | None:
    """Return when the first of the bound events leaves the window."""
    events = (one for found in bound.values() for one in found if isinstance(one, EventPosition))
    times = [view.by_order[one.order].time_us for one in events]
    return min(times) + view.within_us if times else None
