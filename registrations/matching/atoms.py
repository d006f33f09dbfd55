"""Atoms: a path and a value in a form whose hash and equality are those of the languages.
Plain module.

An atom is a tuple, never a text put together from parts, so no separator can be confused with what
is in a part (SUN-06).
"""

from collections.abc import Container, Iterable
from typing import Any

from registrations.filters.values import fields_inside, key_of
from registrations.matching.spec import Spec

Key = Any  # a hashable; two are equal if and only if the values are equal as JSON
Pair = tuple[str, Key]


def atoms_of(spec: Spec) -> tuple[Pair, ...]:
    """The atoms of a spec in their order; a pair given twice counts once (SUN-08)."""
    return tuple(dict.fromkeys((path, key_of(value)) for path, value in spec.pairs))


def keys_of(value: Any) -> Iterable[Key]:
    """The keys of an event's value, each once: of a list those of its members."""
    if isinstance(value, list | tuple):
        return dict.fromkeys(map(key_of, value))
    return (key_of(value),)


def prefixes_of(path: str) -> list[str]:
    """`a.b.c` is reached through `a` and `a.b`."""
    steps = path.split(".")
    return [".".join(steps[:end]) for end in range(1, len(steps))]


def nested_pairs(attributes: dict[str, Any], wanted: Container[str]) -> list[tuple[str, Any]]:
    """The pairs inside an event's objects, and in the objects of its lists, by their dotted paths,
    as `value_at` finds them: a name that has a dot itself is not reached, and a path that is also
    an exact name is that name's. Each path once.

    Only objects whose path is `wanted` are opened, so an event cannot make many long paths.
    """
    found: list[tuple[str, Any]] = []
    waiting = [
        (name, value)
        for name, value in attributes.items()
        if isinstance(value, dict | list | tuple) and "." not in name and name in wanted
    ]
    while waiting:
        outer, value = waiting.pop()
        for name, member in fields_inside(value).items():
            if "." in name:
                continue
            path = f"{outer}.{name}"
            if path not in attributes:
                found.append((path, member))
            if isinstance(member, dict | list | tuple) and path in wanted:
                waiting.append((path, member))
    return found
