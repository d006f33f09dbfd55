"""The temporal language: several events and their relations, in Cambridge prefix form (OIF-20).
Plain module.

`(event (time ?t1) (userid ?u1))` is an event with these fields, whose values the variables are
bound to; `(test (< ?t1 ?t2))` relates them; `(not (event …) (test …))` is an event that must not
exist; `(memory 100)` states how many of the most recent events a match is searched in.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from eventhub.base import limits
from registrations.filters.ast import And, Compare, Const, Node, Path, TextPosition, Truth
from registrations.filters.predicate import check_plain, parse_predicate_form, path_of
from registrations.filters.sexpr import (
    FormBounds,
    Item,
    Literal,
    ParenthesizedForm,
    Word,
    read_forms,
)
from registrations.temporal.errors import as_temporal, temporal_syntax, too_large
from registrations.temporal.expressions import (
    JoinTest,
    relations_in,
    variables_of,
)
from registrations.temporal.pattern import (
    SEQUENCE,
    AbsentEvent,
    EventPattern,
    FieldBinding,
    TemporalPattern,
)
from registrations.temporal.relation_forms import parsed_test, variable_in

_BOUNDS = FormBounds()  # those of a filter: a pattern is read, stored and shown as one
_HEADS = ("event", "test", "not", "memory")
Args = tuple[Item, ...]


def parse_temporal(text: str) -> TemporalPattern:
    """Parse a text. Raises TemporalSyntax with line and column, TemporalTooLarge."""
    with as_temporal():
        return _pattern(text, read_forms(text, _BOUNDS))


class _ParsedForms(NamedTuple):
    events: list[EventPattern]
    absent: list[AbsentEvent]
    tests: list[JoinTest]
    memory: list[int]


def _pattern(text: str, items: Args) -> TemporalPattern:
    parts = _ParsedForms([], [], [], [])
    for item in items:
        head, args = _head(item, _HEADS)
        _FORMS[head.text](head, args, parts)
    if not parts.events:
        where = items[0].position if items else TextPosition(1, 1)
        raise temporal_syntax("A temporal pattern has at least one (event …).", where)
    _check_sizes(parts)
    bound = {binding.variable.name for event in parts.events for binding in event.bindings}
    _check_bound(parts.tests, bound)
    for absent in parts.absent:
        own = {binding.variable.name for binding in absent.event.bindings}
        _check_bound(absent.tests, bound | own)
    (memory,) = parts.memory or [limits.TEMPORAL_MEMORY_DEFAULT]
    return TemporalPattern(
        text, memory, tuple(parts.events), tuple(parts.absent), tuple(parts.tests)
    )


def _add_event(head: Word, args: Args, parts: _ParsedForms) -> None:
    parts.events.append(_event(head, args))


def _add_test(head: Word, args: Args, parts: _ParsedForms) -> None:
    parts.tests.append(_only_test(head, args))


def _add_absent(head: Word, args: Args, parts: _ParsedForms) -> None:
    if not args:
        raise temporal_syntax("`not` takes an event and its tests.", head.position)
    event = _event(*_head(args[0], ("event",)))
    tests = [_only_test(*_head(arg, ("test",))) for arg in args[1:]]
    parts.absent.append(AbsentEvent(event, tuple(tests)))


def _set_memory(head: Word, args: Args, parts: _ParsedForms) -> None:
    if parts.memory:
        raise temporal_syntax("The memory is stated already.", head.position)
    value = args[0].value if len(args) == 1 and isinstance(args[0], Literal) else None
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise temporal_syntax(
            "`memory` takes a number of events from 1, as in (memory 100).", head.position
        )
    if value > limits.TEMPORAL_MEMORY_MAX:
        raise too_large(args[0].position, memory_max=limits.TEMPORAL_MEMORY_MAX)
    parts.memory.append(value)


_FORMS: dict[str, Callable[[Word, Args, _ParsedForms], None]] = {
    "event": _add_event,
    "test": _add_test,
    "not": _add_absent,
    "memory": _set_memory,
}


def _head(item: Item, known: tuple[str, ...]) -> tuple[Word, Args]:
    """Return the operator of a form and its arguments."""
    expected = ", ".join(f"({name} …)" for name in known)
    if not isinstance(item, ParenthesizedForm) or not item.items:
        raise temporal_syntax(f"Expected {expected}.", item.position)
    head = item.items[0]
    if not isinstance(head, Word) or not head.plain or head.text not in known:
        raise temporal_syntax(f"Expected {expected}.", head.position)
    return head, item.items[1:]


def _event(head: Word, args: Args) -> EventPattern:
    nodes: list[Node] = []
    bindings: list[FieldBinding] = []
    for arg in args:
        if not isinstance(arg, ParenthesizedForm) or len(arg.items) != 2:
            raise temporal_syntax(
                "Expected (field ?variable), (field constant) or (where filter).", arg.position
            )
        name, value = arg.items
        if isinstance(value, ParenthesizedForm):
            nodes.append(_where(name, value))
            continue
        path = _path(name)
        if isinstance(value, Literal):
            nodes.append(Compare("=", _testable(path), Const(value.value, value.position)))
        else:
            bindings.append(FieldBinding(path, variable_in(value)))
    filter = And(tuple(nodes)) if len(nodes) > 1 else nodes[0] if nodes else Truth(True)
    return EventPattern(filter, tuple(bindings), head.position)


def _where(name: Item, value: ParenthesizedForm) -> Node:
    if not isinstance(name, Word) or name.text != "where":
        raise temporal_syntax("A filter of an event is written (where filter).", name.position)
    return parse_predicate_form(value)


def _path(item: Item) -> Path:
    if not isinstance(item, Word) or item.text.startswith("?"):
        raise temporal_syntax("Expected a field, as in (time ?t1).", item.position)
    if not item.plain:
        return Path(item.text, position=item.position)
    if item.text == "@sequence":
        return Path(SEQUENCE.name, SEQUENCE.space, item.position)
    path = path_of(item.text, item.position)
    if path.space == "attributes":
        check_plain(item)
    return path


def _testable(path: Path) -> Path:
    if path == SEQUENCE and path.position is not None:
        raise temporal_syntax("@sequence is compared in a test.", path.position)
    return path


def _only_test(head: Word, args: Args) -> JoinTest:
    if len(args) != 1:
        raise temporal_syntax("`test` takes one test, as in (test (< ?t1 ?t2)).", head.position)
    return parsed_test(args[0])


def _check_bound(tests: Iterable[JoinTest], bound: set[str]) -> None:
    for variable in (found for test in tests for found in variables_of(test)):
        if variable.name not in bound:
            message = f"No event of this pattern binds ?{variable.name}"
            hint = "; variables of an event in `not` are known to its own tests only."
            raise temporal_syntax(message + hint, variable.position)


def _check_sizes(parts: _ParsedForms) -> None:
    events = [*parts.events, *(one.event for one in parts.absent)]
    if len(events) > limits.TEMPORAL_EVENTS_MAX:
        raise too_large(events[-1].position, events_max=limits.TEMPORAL_EVENTS_MAX)
    variables: set[str] = set()
    for variable in (binding.variable for event in events for binding in event.bindings):
        variables.add(variable.name)
        if len(variables) > limits.TEMPORAL_VARIABLES_MAX:
            raise too_large(variable.position, variables_max=limits.TEMPORAL_VARIABLES_MAX)
    tests = [*parts.tests, *(test for one in parts.absent for test in one.tests)]
    if sum(map(relations_in, tests)) > limits.TEMPORAL_TESTS_MAX:
        raise too_large(events[0].position, tests_max=limits.TEMPORAL_TESTS_MAX)
