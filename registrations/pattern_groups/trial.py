"""The dry run of a pattern: it is fed some events and shows after each of them what it has bound,
what it waits for and what it puts out. Nothing is stored. Plain module.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from eventhub.event.envelope import Event
from registrations.agents.run import AgentOutput
from registrations.filters.evaluate import TypeHierarchy
from registrations.filters.values import MISSING
from registrations.pattern_groups.engine import HubEngine, HubPattern
from registrations.pattern_groups.shown import output_json, position_json, waiting_json
from registrations.pattern_groups.trial_turns import Pause
from registrations.patterns.ast import Pattern
from registrations.patterns.pattern_engine import EventPosition, Match
from registrations.patterns.subscribers import key_value

_STREAM = 1  # the only one of a dry run


class TriedEvent(NamedTuple):
    """An event of a dry run. `segment`: ""; it is not stored."""

    event: Event
    segment: str
    sequence: int
    time_us: int


def steps_of(
    pattern: HubPattern,
    events: Iterable[TriedEvent],
    *,
    hierarchy: TypeHierarchy,
    stream: str,
    pause: Pause,
) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield the JSON of each event's step, and how often the pattern matched with it. `stream`: the
    name of the stored events' stream; `pause`: called very often.
    """
    engine, names = HubEngine(hierarchy), {_STREAM: stream}
    engine.add(pattern)
    for order, tried in enumerate(events, 1):
        position = EventPosition(order, _STREAM, tried.segment, tried.sequence, tried.time_us)
        outputs: list[AgentOutput] = []
        for found in engine.steps(position, tried.event):
            outputs += found
            pause()
        key = _key_of(pattern, tried.event)
        waiting = None if key is MISSING else engine.waiting(pattern.number, key)
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
        pause()
        yield step, sum(isinstance(one, Match) for one in outputs)


def _key_of(pattern: HubPattern, event: Event) -> Any:
    """Return the key of an event's partition; MISSING if it belongs to none."""
    compiled = pattern.compiled
    return key_value(compiled.per, event) if isinstance(compiled, Pattern) else None
