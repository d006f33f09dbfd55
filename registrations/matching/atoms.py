"""Atoms: pairs of a path and a value whose hash and equality follow the rules of the filter
languages. Plain module.

An atom is a tuple, never a text joined from parts, so no separator can be confused with the content
of a part (SUN-06).
"""

from collections.abc import Container, Iterable
from typing import Any

from registrations.filters.values import fields_inside, key_of
from registrations.matching.spec import Spec

Key = Any  # a hashable; two are equal if and only if the values are equal as JSON
Pair = tuple[str, Key]


def atoms_of(spec: Spec) -> tuple[Pair, ...]:
    """Return the atoms of a spec in order; a repeated pair counts once (SUN-08)."""
    return tuple(dict.fromkeys((path, key_of(value)) for path, value in spec.pairs))


def keys_of(value: Any) -> Iterable[Key]:
    """Return the keys of an event's value, each once: of a list those of its members."""
    if isinstance(value, list | tuple):
        return dict.fromkeys(map(key_of, value))
    return (key_of(value),)


def prefixes_of(path: str) -> list[str]:
    """Return the paths that lead to a path: `a` and `a.b` for `a.b.c`."""
    steps = path.split(".")
    return [".".join(steps[:end]) for end in range(1, len(steps))]


def nested_pairs(attributes: dict[str, Any], opened: Container[str]) -> list[tuple[str, Any]]:
    """Return the pairs inside an event's objects, and in the objects of its lists, by their dotted
    paths, each once, as `value_at` finds them: a name with a dot is not reached, and an exact name
    takes precedence over an equal path.

    Only objects whose path is in `opened` are read, so an event cannot produce many long paths.
    """
    found: list[tuple[str, Any]] = []
    waiting = [
        (name, value)
        for name, value in attributes.items()
        if isinstance(value, dict | list | tuple) and "." not in name and name in opened
    ]
    while waiting:
        outer, value = waiting.pop()
        for name, member in fields_inside(value).items():
            if "." in name:
                continue
            path = f"{outer}.{name}"
            if path not in attributes:
                found.append((path, member))
            if isinstance(member, dict | list | tuple) and path in opened:
                waiting.append((path, member))
    return found
