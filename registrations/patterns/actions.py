"""What actions do when their part matches: the outputs that they return, and the counters that they
change (RDY-30 to RDY-34). Plain module.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from eventhub.base import limits
from registrations.filters.ast import Scalar
from registrations.filters.values import number_of
from registrations.patterns.ast import (
    Action,
    AnnounceAction,
    AssignAction,
    IncrementAction,
    NewEventForm,
    NotifyAction,
)
from registrations.patterns.new_events import NewEventValues
from registrations.patterns.pattern_engine import (
    Announce,
    Bound,
    EventPosition,
    NewEvent,
    Notify,
    Output,
)
from registrations.patterns.values import Bindings, BoundEvent, BoundValue, Number, PatternValue

_BY = "by"


class Effect(NamedTuple):
    """An action that has an effect besides a binding. `values`: what it computes."""

    action: NotifyAction | AnnounceAction | IncrementAction
    values: tuple[tuple[str, PatternValue], ...] = ()
    form: NewEventValues | None = None


class Occasion(NamedTuple):
    """The match for which actions run: of which pattern, partition and event."""

    pattern: int
    key: Scalar
    position: EventPosition


def effects_of(actions: Iterable[Action]) -> tuple[Effect, ...]:
    """Return the actions of a part that have an effect, in order."""
    return tuple(_effect(action) for action in actions if not isinstance(action, AssignAction))


def run(
    effects: Iterable[Effect], occasion: Occasion, bindings: Bindings, counters: dict[str, Number]
) -> Iterator[Output]:
    """Run actions in order; yield their outputs and change the counters."""
    for effect in effects:
        match effect.action:
            case NotifyAction(variables, target):
                names = bindings if variables is None else variables
                found = {name: outer(bindings[name]) for name in names if name in bindings}
                yield Notify(*occasion, found, target)
            case AnnounceAction(event, stream):
                new = _new_event(event, effect, bindings, counters)
                if new is not None:
                    yield Announce(*occasion, new, causes_of(bindings), stream)
            case IncrementAction(counter):
                added = number_of(effect.values[0][1].of(bindings, counters))
                total = counters.get(counter, 0) + (added or 0)
                if limits.INTEGER_MIN <= total <= limits.INTEGER_MAX:  # as every value of an event
                    counters[counter] = total


def outer(value: BoundValue) -> Bound:
    """Return what a variable is bound to, as outputs state it."""
    if isinstance(value, BoundEvent):
        return (value.position,)
    return (value,) if isinstance(value, NewEvent) else tuple(one.position for one in value)


def causes_of(bindings: Bindings) -> tuple[EventPosition, ...]:
    """Return the positions of all bound events, each once, in order."""
    found = {
        one for value in bindings.values() for one in outer(value) if isinstance(one, EventPosition)
    }
    return tuple(sorted(found))


def _effect(action: NotifyAction | AnnounceAction | IncrementAction) -> Effect:
    match action:
        case AnnounceAction(NewEventForm() as event):
            form = NewEventValues(event)
            return Effect(action, form.values, form)
        case IncrementAction(_, by):
            return Effect(action, ((_BY, PatternValue(by)),))
    return Effect(action)


def _new_event(
    event: NewEventForm | str, effect: Effect, bindings: Bindings, counters: dict[str, Number]
) -> NewEvent | None:
    if effect.form is not None:
        return effect.form.of(bindings, counters)
    found = bindings.get(str(event))
    return found if isinstance(found, NewEvent) else None
