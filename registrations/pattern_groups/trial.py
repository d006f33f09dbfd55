"""The dry run of a pattern: it is fed some events and shows after each of them what it has bound,
what it waits for and what it puts out. Nothing is stored. Plain module.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from eventhub.base import limits
from eventhub.base.errors import Unavailable
from eventhub.event.envelope import Event
from registrations.agents.engine import AgentEngine
from registrations.agents.program import AgentProgram
from registrations.agents.run import AgentOutput
from registrations.filters.ast import Scalar
from registrations.filters.evaluate import TypeHierarchy
from registrations.filters.values import MISSING
from registrations.pattern_groups.definition import Tree
from registrations.pattern_groups.shown import output_json, position_json, waiting_json
from registrations.patterns.ast import Pattern
from registrations.patterns.engine import ReadyEngine
from registrations.patterns.leaves import LeafIndex
from registrations.patterns.pattern_engine import EventPosition, Match, Waiting
from registrations.patterns.subscribers import key_value
from registrations.temporal.engine import TemporalEngine
from registrations.temporal.pattern import TemporalPattern
from registrations.temporal.scope_key import ScopeKey

_STREAM, _NUMBER = 1, 1  # the only stream and the only pattern of a dry run
_SCOPE = ScopeKey((_STREAM,))


_one_at_a_time = threading.Lock()  # each takes all of the process's time for seconds


@contextmanager
def trial() -> Iterator[None]:
    """Run patterns in a web process. Raises Unavailable while it does so for others."""
    if not _one_at_a_time.acquire(timeout=limits.PATTERN_TRIAL_WAIT_S_MAX):
        message = "The hub computes other dry runs and partial matches; try again in a moment."
        raise Unavailable(message)
    try:
        yield
    finally:
        _one_at_a_time.release()


class TriedEvent(NamedTuple):
    """An event of a dry run. `segment`: ""; it is not stored."""

    event: Event
    segment: str
    sequence: int
    time_us: int


class _Subject(NamedTuple):
    """The pattern in its engine. `key`: of an event's partition, MISSING if it belongs to none."""

    feed: Callable[[EventPosition, Event], list[AgentOutput]]
    waiting: Callable[[Scalar], Waiting | None]
    key: Callable[[Event], Any]


def steps_of(
    tree: Tree, events: Iterable[TriedEvent], *, once: bool, hierarchy: TypeHierarchy, stream: str
) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield the JSON of each event's step, and how often the pattern matched with it. `stream`: the
    name of the stored events' stream.
    """
    subject, names = _subject(tree, once, hierarchy), {_STREAM: stream}
    for order, tried in enumerate(events, 1):
        position = EventPosition(order, _STREAM, tried.segment, tried.sequence, tried.time_us)
        outputs = subject.feed(position, tried.event)
        key = subject.key(tried.event)
        waiting = None if key is MISSING else subject.waiting(key)
        step = {
            "event": {
                **position_json(position, names),
                "domain": tried.event.domain,
                "type": tried.event.type,
                "attributes": tried.event.attributes,
            },
            "key": None if key is MISSING else key,
            "outputs": [output_json(one, names) for one in outputs],
            "tree": None if waiting is None else waiting_json(waiting, names),
        }
        yield step, sum(isinstance(one, Match) for one in outputs)


def _subject(tree: Tree, once: bool, hierarchy: TypeHierarchy) -> _Subject:
    leaves = LeafIndex(hierarchy)
    match tree:
        case Pattern():
            ready = ReadyEngine(leaves)
            ready.add(_NUMBER, tree)
            return _Subject(
                lambda position, event: [*ready.feed(position, event)],
                lambda key: ready.waiting(_NUMBER, key),
                lambda event: key_value(tree.per, event),
            )
        case TemporalPattern():
            temporal = TemporalEngine(hierarchy, leaves=leaves)
            temporal.add(_NUMBER, tree, _SCOPE, once=once)
            return _Subject(
                lambda position, event: [*temporal.feed(position, event)],
                lambda key: temporal.waiting(_NUMBER),
                lambda event: None,
            )
        case AgentProgram():
            agents = AgentEngine(hierarchy, leaves=leaves)
            agents.add(_NUMBER, tree, _SCOPE)
            return _Subject(agents.feed, lambda key: agents.waiting(_NUMBER), lambda event: None)
