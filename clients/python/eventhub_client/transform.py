"""Transforms events that are forwarded: a switch chooses the transformer by the application that
issued the event. Plain module.

    {"billing": [{"rename": {"total": "amount"}}, {"set": {"currency": "CHF"}}],
     "*": [{"remove": ["internal"]}]}

The first of the event's applications that the switch names decides; `*` matches any other event,
and without it those pass unchanged. Steps apply in order to the attributes, which dotted paths
name. A stored event never changes: the result is another event. A transformation that changes a
property which the type declares immutable is refused.

Source: FOX 2.1, 4.1.2 (FOX-03, FOX-05).
"""

from collections.abc import Callable, Collection, Mapping
from copy import deepcopy
from typing import Any, NamedTuple

from eventhub.base.errors import InvalidField
from eventhub.event.immutable import MISSING, require_unchanged, value_at

ANY = "*"

Attributes = dict[str, Any]
Step = Callable[[Attributes], None]


class Switch(NamedTuple):
    """Transformers by application."""

    transformers: Mapping[str, list[Step]]

    @classmethod
    def of(cls, given: Any) -> "Switch":
        """Parse a switch in JSON. Raises InvalidField with the position."""
        if not isinstance(given, dict):
            raise InvalidField("A switch is an object: transformers by application.")
        return cls({name: _steps(steps, name) for name, steps in given.items()})

    def apply(self, event: Mapping[str, Any], immutable: Collection[str] = ()) -> dict[str, Any]:
        """Return an event in the hub's JSON, transformed. `immutable`: dotted paths, from the
        type's definition. Raises ImmutableProperty.
        """
        steps = self._chosen(event.get("application", ()))
        if not steps:
            return dict(event)
        before = event.get("attributes", {})
        after = deepcopy(before)
        for step in steps:
            step(after)
        require_unchanged(before, after, immutable)
        return {**event, "attributes": after}

    def _chosen(self, applications: Collection[str]) -> list[Step]:
        for name in (*applications, ANY):
            if name in self.transformers:
                return self.transformers[name]
        return []


def _steps(given: Any, at: str) -> list[Step]:
    if not isinstance(given, list):
        raise InvalidField("A transformer is a list of steps.", field=at)
    return [_step(step, f"{at}[{index}]") for index, step in enumerate(given)]


def _step(given: Any, at: str) -> Step:
    if not isinstance(given, dict) or len(given) != 1:
        raise InvalidField("A step is an object with one of set, rename, remove.", field=at)
    [(kind, what)] = given.items()
    if kind == "set" and isinstance(what, dict):
        return lambda attributes: _set_all(attributes, what)
    if kind == "rename" and isinstance(what, dict) and _texts(what.values()):
        return lambda attributes: _rename_all(attributes, what)
    if kind == "remove" and isinstance(what, list) and _texts(what):
        return lambda attributes: _remove_all(attributes, what)
    message = "`set` and `rename` take an object by path, `remove` a list of paths."
    raise InvalidField(message, field=f"{at}.{kind}")


def _texts(values: Collection[Any]) -> bool:
    return all(isinstance(value, str) and value for value in values)


def _set_all(attributes: Attributes, values: Mapping[str, Any]) -> None:
    for path, value in values.items():
        _set(attributes, path, deepcopy(value))


def _rename_all(attributes: Attributes, paths: Mapping[str, str]) -> None:
    """Rename paths; all are removed before any is set, so that two can be exchanged."""
    taken = {new: _take(attributes, old) for old, new in paths.items()}
    for path, value in taken.items():
        if value is not MISSING:
            _set(attributes, path, value)


def _remove_all(attributes: Attributes, paths: Collection[str]) -> None:
    for path in paths:
        _take(attributes, path)


def _set(attributes: Attributes, path: str, value: Any) -> None:
    """Set a value; create objects along the path, in place of other values."""
    *way, name = path.split(".")
    inner = attributes
    for step in way:
        if not isinstance(inner.get(step), dict):
            inner[step] = {}
        inner = inner[step]
    inner[name] = value


def _take(attributes: Attributes, path: str) -> Any:
    """Remove a value and return it."""
    *way, name = path.split(".")
    inner = value_at(attributes, ".".join(way)) if way else attributes
    return inner.pop(name, MISSING) if isinstance(inner, dict) else MISSING
