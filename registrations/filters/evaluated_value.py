"""The values that a test evaluated, rendered for people: cut to limits, and missing values are
reported as missing. Plain module.
"""

import json
from typing import Any, NamedTuple

from eventhub.base import limits
from registrations.filters.ast import Arithmetic, Path, kind_of
from registrations.filters.event_values import EventValues
from registrations.filters.printed import printed_operand
from registrations.filters.values import MISSING, members


class EvaluatedValue(NamedTuple):
    """A path and its value. `kind`: `missing`, `null`, `boolean`, `integer`, `number`, `text`,
    `list` or `object`. `values`: the compared values, cut to the limits; `more`: how many are
    omitted.
    """

    path: str
    kind: str
    values: tuple[Any, ...]
    more: int

    def text(self) -> str:
        """Return it in words, such as `priority is 3`."""
        if self.kind == "missing":
            return f"{self.path} is missing"
        if self.kind == "object":
            return f"{self.path} is an object"
        if self.kind != "list":
            return f"{self.path} is {rendered(self.values[0])}"
        if not self.values:
            return f"{self.path} is a list without values"
        more = [f"{self.more} more"] if self.more else []
        return f"{self.path} has {', '.join([*map(rendered, self.values), *more])}"


def value_at_path(path: Path, event: EventValues) -> EvaluatedValue:
    """Evaluate a path in an event."""
    value = event.value(path)
    name = printed_operand(path)
    if value is MISSING:
        return EvaluatedValue(name, "missing", (), 0)
    if isinstance(value, dict):
        return EvaluatedValue(name, "object", (), 0)
    found = list(members(value))
    some = tuple(map(_cut, found[: limits.EXPLAIN_VALUES_MAX]))
    kind = "list" if isinstance(value, list | tuple) else kind_of(value)
    return EvaluatedValue(name, kind, some, len(found) - len(some))


def result_text(operand: Arithmetic, event: EventValues) -> str:
    """Return the result of a calculation, in words."""
    found = event.of(operand)
    text = printed_operand(operand)
    if not found:
        return f"{text} has no result"
    some = [rendered(one) for one in found[: limits.EXPLAIN_VALUES_MAX]]
    more = [f"{len(found) - len(some)} more"] if len(found) > len(some) else []
    return f"{text} is {', '.join([*some, *more])}"


def rendered(value: Any) -> str:
    """Return a value as JSON, cut to the limit."""
    return json.dumps(_cut(value), ensure_ascii=False)


def _cut(value: Any) -> Any:
    if isinstance(value, str) and len(value) > limits.EXPLAIN_CHARS_MAX:
        return value[: limits.EXPLAIN_CHARS_MAX] + "…"
    return value
