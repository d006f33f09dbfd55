"""Every filter against every event, each compiled to a Python function of its own, like code
written by hand for values of known types. Plain.
"""

from collections.abc import Callable
from typing import Any

from eventhub.event.envelope import Event
from registrations.filters.ast import And, Compare, Const, Exists, Node, Not, Or, Path, Text
from registrations.filters.predicate import parse_predicate

Test = Callable[[dict[str, Any]], bool]


class EvaluateAll:
    """The functions in a list; their indexes are the registrations' numbers."""

    def __init__(self, texts: list[str]) -> None:
        source = ",".join(f"lambda e: {written(parse_predicate(text))}" for text in texts)
        self._tests: list[Test] = eval(f"[{source}]")

    def match(self, event: Event) -> list[int]:
        attributes = event.attributes
        return [id for id, test in enumerate(self._tests) if test(attributes)]


def written(node: Node) -> str:
    """Return the filter as Python source; a comparison with a missing value is false."""
    match node:
        case And(items):
            return f"({' and '.join(map(written, items))})"
        case Or(items):
            return f"({' or '.join(map(written, items))})"
        case Not(item):
            return f"(not {written(item)})"
        case Exists(Path(name)):
            return f"({name!r} in e)"
        case Text("prefix", Path(name), text):
            return f"e.get({name!r}, '').startswith({text!r})"
        case Compare("=", Path(name), Const(value)):
            return f"(e.get({name!r}) == {value!r})"
        case Compare(op, Path(name), Const(value)):
            return f"({name!r} in e and e[{name!r}] {op} {value!r})"
    raise NotImplementedError(node)
