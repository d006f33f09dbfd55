"""What a test saw in an event, as a person is shown it: bounded, and what is missing is said to be.
Plain module.
"""

import json
from typing import Any, NamedTuple

from eventhub.base import limits
from registrations.filters.ast import Arithmetic, Path, kind_of
from registrations.filters.event_values import EventValues
from registrations.filters.printed import printed_operand
from registrations.filters.values import MISSING, members


class Seen(NamedTuple):
    """A path and what it led to. `kind`: `missing`, `null`, `boolean`, `integer`, `number`, `text`,
    `list`, `object`. `values`: what of it is compared, cut to what can be shown; `more`: how many
    are left out.
    """

    path: str
    kind: str
    values: tuple[Any, ...]
    more: int

    def said(self) -> str:
        """In words, as `priority is 3`."""
        if self.kind == "missing":
            return f"{self.path} is missing"
        if self.kind == "object":
            return f"{self.path} is an object"
        if self.kind != "list":
            return f"{self.path} is {shown(self.values[0])}"
        if not self.values:
            return f"{self.path} is a list without values"
        more = [f"{self.more} more"] if self.more else []
        return f"{self.path} has {', '.join([*map(shown, self.values), *more])}"


def seen_at(path: Path, event: EventValues) -> Seen:
    """What a path leads to in an event."""
    value = event.value(path)
    name = printed_operand(path)
    if value is MISSING:
        return Seen(name, "missing", (), 0)
    if isinstance(value, dict):
        return Seen(name, "object", (), 0)
    found = list(members(value))
    some = tuple(map(_cut, found[: limits.EXPLAIN_VALUES_MAX]))
    kind = "list" if isinstance(value, list | tuple) else kind_of(value)
    return Seen(name, kind, some, len(found) - len(some))


def comes_to(operand: Arithmetic, event: EventValues) -> str:
    """What a calculation comes to, in words."""
    found = event.of(operand)
    text = printed_operand(operand)
    if not found:
        return f"{text} comes to nothing"
    some = [shown(one) for one in found[: limits.EXPLAIN_VALUES_MAX]]
    more = [f"{len(found) - len(some)} more"] if len(found) > len(some) else []
    return f"{text} is {', '.join([*some, *more])}"


def shown(value: Any) -> str:
    """A value as JSON, cut."""
    return json.dumps(_cut(value), ensure_ascii=False)


def _cut(value: Any) -> Any:
    if isinstance(value, str) and len(value) > limits.EXPLAIN_CHARS_MAX:
        return value[: limits.EXPLAIN_CHARS_MAX] + "…"
    return value
