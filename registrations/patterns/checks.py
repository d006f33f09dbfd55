"""The rules that the parts of a compound pattern must meet together: variables, ranges, actions and
limits. Plain module.
"""

from collections.abc import Iterable, Iterator
from typing import Literal, NoReturn

from eventhub.base import limits
from registrations.filters.ast import And, Exists, Node, Not, Operand, Or, Path, TextPosition
from registrations.filters.bounds import bounded
from registrations.filters.normal import normal
from registrations.filters.paths import all_paths, paths_of
from registrations.filters.sexpr import syntax_error
from registrations.patterns.ast import (
    Action,
    AnnounceAction,
    AssignAction,
    Combined,
    Do,
    Element,
    IncrementAction,
    NewEventForm,
    NotifyAction,
    Part,
    Pattern,
    VariablePath,
    Where,
    elements_of,
    parts_of,
)
from registrations.patterns.errors import PatternTooLarge

Kind = Literal["event", "sequence", "new event"]
Scope = dict[str, Kind]  # variables by name
_START = TextPosition(1, 1)


def check(pattern: Pattern) -> None:
    """Raise FilterSyntax with its position, FilterTooLarge or PatternTooLarge for a pattern that
    breaks a rule.
    """
    _check_size(pattern.part)
    for element in elements_of(pattern.part):
        _check_element(element)
    _check_needs_events(pattern.part, whole=True)
    least, last = _events_min(pattern.part), pattern.last or limits.PATTERN_LAST_DEFAULT
    if least > last:
        _refuse(
            f"This needs {least:,} events, and a match spans at most {last:,}; write "
            f"`last {least}` or more after the pattern.",
            pattern.part.position,
        )
    actions = actions_of(pattern.part)
    counters = {one.counter for one in actions if isinstance(one, IncrementAction)}
    _Variables(counters).of(pattern.part)


def actions_of(part: Part) -> "Iterator[Action]":
    """Yield the actions of a part and of the parts inside it."""
    for inner in parts_of(part):
        yield from actions_of(inner)
    if isinstance(part, Do):
        yield from part.actions


def may_be_empty(part: Part) -> bool:
    """Return whether a part matches at its start, before any event."""
    match part:
        case Element():
            return part.least == 0
        case Combined("&&" | ";", left, right):
            return may_be_empty(left) and may_be_empty(right)
    return False  # such parts are refused


def _check_size(part: Part) -> None:
    waiting: list[tuple[Part, int]] = [(part, 1)]
    while waiting:
        one, depth = waiting.pop()
        if depth > limits.PATTERN_DEPTH_MAX:
            raise PatternTooLarge(position=one.position, depth_max=limits.PATTERN_DEPTH_MAX)
        waiting += [(inner, depth + 1) for inner in parts_of(one)]
    elements = elements_of(part)
    if len(elements) > limits.PATTERN_ELEMENTS_MAX:
        position = elements[limits.PATTERN_ELEMENTS_MAX].position
        raise PatternTooLarge(position=position, elements_max=limits.PATTERN_ELEMENTS_MAX)
    for number, action in enumerate(actions_of(part)):
        if number == limits.PATTERN_ACTIONS_MAX:
            raise PatternTooLarge(position=action.position, actions_max=limits.PATTERN_ACTIONS_MAX)


def _check_element(element: Element) -> None:
    bounded(element.node)
    normal(element.node)
    most = element.most
    if most is not None and most < element.least:
        _refuse(
            f"A sequence of at least {element.least} and at most {most} events cannot be; write "
            f"[{most}..{element.least}].",
            element.position,
        )
    if most == 0:
        _refuse("A sequence of no events matches nothing; remove it.", element.position)


def _check_needs_events(part: Part, *, whole: bool = False) -> None:
    """Refuse a part that matches without an event where that makes no sense."""
    match part:
        case Combined(operator, left, right):
            for side in (left, right):
                _check_needs_events(side)
                if operator in ("||", "butnot"):
                    _check_one(side, _EMPTY[operator])
        case Where(inner) | Do(inner):
            _check_needs_events(inner)
            what = "A condition" if isinstance(part, Where) else "An action"
            _check_one(inner, f"{what} needs an event, and this part matches before any.")
    if whole:
        _check_one(
            part, "A pattern needs an event: this one would match before any, again and again."
        )


_EMPTY = {
    "||": "This side of || matches before any event, so the other side never counts.",
    "butnot": "This side of butnot matches before any event, so the other side never counts.",
}


def _check_one(part: Part, why: str) -> None:
    if may_be_empty(part):
        least = next(element for element in elements_of(part) if element.least == 0)
        most = "*" if least.most is None else least.most
        _refuse(f"{why} Write {least.variable}[1..{most}].", least.position)


def _events_min(part: Part) -> int:
    """Return the least number of events that a match spans."""
    match part:
        case Element():
            return part.least
        case Combined("&&", left, right):
            return max(_events_min(left), _events_min(right))
        case Combined("||", left, right):
            return min(_events_min(left), _events_min(right))
        case Combined(";", left, right):
            return _events_min(left) + _events_min(right)
        case Combined(_, left):
            return _events_min(left)
    return _events_min(part.part)


class _Variables:
    """The check of variables: each has one place, and is used where it is bound."""

    def __init__(self, counters: set[str]) -> None:
        self._counters = counters
        self._known: set[str] = set()

    def of(self, part: Part) -> Scope:
        """Return the variables that a part binds."""
        match part:
            case Element():
                return self._element(part)
            case Combined():
                scope, right = self.of(part.left), self.of(part.right)
                return scope if part.operator == "butnot" else {**scope, **right}
            case Where(inner, condition):
                scope = self.of(inner)
                self._check_condition(condition, scope)
                return scope
        scope = dict(self.of(part.part))
        for action in part.actions:
            self._check_action(action, scope)
        return scope

    def _element(self, part: Element) -> Scope:
        if not part.variable:
            return {}
        self._add(part.variable, part.position)
        return {part.variable: "sequence" if part.is_sequence else "event"}

    def _add(self, name: str, position: TextPosition | None) -> None:
        if name in self._known:
            _refuse(f"The variable {name} is bound twice; use another name.", position)
        self._known.add(name)

    def _check_condition(self, condition: Node, scope: Scope) -> None:
        bounded(condition)
        tested = {id(path) for test in _tests(condition) for path in _bare_of(test)}
        for path in _of_variables(all_paths(condition)):
            if path.function == "counter":
                _refuse("A condition cannot depend on a counter.", path.position)
            self._check_path(path, scope, bare=id(path) in tested)

    def _check_action(self, action: Action, scope: Scope) -> None:
        match action:
            case AssignAction(variable, event):
                self._check_event(event, scope, action.position)
                self._add(variable, action.position)
                scope[variable] = "new event"
            case NotifyAction(variables):
                for name in variables or ():
                    self._check_name(name, scope, action.position)
            case AnnounceAction(NewEventForm() as event):
                self._check_event(event, scope, action.position)
            case AnnounceAction(str(name)):
                self._check_name(name, scope, action.position)
                if scope[name] != "new event":
                    _refuse(
                        f"{name} is an event of the log; announce a new one, as in "
                        "announce(Type, {user = a.user}).",
                        action.position,
                    )
            case IncrementAction(_, by):
                self._check_value(by, scope)

    def _check_event(
        self, event: NewEventForm, scope: Scope, position: TextPosition | None
    ) -> None:
        if len(event.attributes) > limits.PATTERN_ATTRIBUTES_MAX:
            most = limits.PATTERN_ATTRIBUTES_MAX
            raise PatternTooLarge(position=position, attributes_max=most)
        for _, value in event.attributes:
            self._check_value(value, scope)

    def _check_value(self, value: Operand, scope: Scope) -> None:
        for path in _of_variables(paths_of(value)):
            self._check_path(path, scope, bare=False)

    def _check_path(self, path: VariablePath, scope: Scope, *, bare: bool) -> None:
        name, function, position = path.variable, path.function, path.position
        if function == "counter":
            if path.component is not None or name not in self._counters:
                _refuse(f"No action increments a counter {path.name[8:-1]}.", position)
            return
        self._check_name(name, scope, position)
        if path.component is None and not bare and function != "count":
            _refuse(f"Expected a component of {name}, as in {name}.Priority.", position)

    def _check_name(self, name: str, scope: Scope, position: TextPosition | None) -> None:
        if name in scope:
            return
        if name in self._known:
            _refuse(
                f"{name} is not bound in the part before this; put parentheses around the part "
                "that binds it. The right side of butnot binds nothing.",
                position,
            )
        _refuse(f"There is no variable {name} before this.", position)


def _of_variables(paths: Iterable[Path]) -> Iterator[VariablePath]:
    return (path for path in paths if isinstance(path, VariablePath))


def _tests(condition: Node) -> Iterator[Node]:
    match condition:
        case And(items) | Or(items):
            for item in items:
                yield from _tests(item)
        case Not(item):
            yield from _tests(item)
        case _:
            yield condition


def _bare_of(test: Node) -> tuple[VariablePath, ...]:
    """Return a variable whose existence is tested."""
    if isinstance(test, Exists) and isinstance(test.path, VariablePath):
        if test.path.function:
            _refuse("`exist` tests a variable or a component of one.", test.path.position)
        return (test.path,)
    return ()


def _refuse(message: str, position: TextPosition | None) -> NoReturn:
    raise syntax_error(message, position or _START)
