"""The words of programs: domains, types, paths and values, all full of traps."""

from random import Random
from typing import Any, Literal, TypeVar

from hypothesis import strategies as st

DOMAINS = ("a", "a:b", "", "ä")
TYPES = ("c", "b:c", "c.d", "=")
APPLICATIONS = ("a", "c", "a:b", "")
PATHS = (
    *("x", "y", "z", "x=1", "x:y", "", ".", "a.", ".a", "\0", "x\0y", "名", "é", "e\u0301"),
    *("a", "a.b", "a.b.c", "a.c", "b.c", "x.y"),
)
FEW_PATHS = ("x", "y", "a.b", "z")  # instead of these, so that fields and tests often coincide
# values that a careless comparison takes for equal
ALIKE: tuple[tuple[Any, ...], ...] = (
    (1, 1.0, True, "1", "1.0", "true", "True", "(True,)"),
    (0, 0.0, -0.0, False, None, "0", "", "null"),
    (2**53, float(2**53), 2**53 + 1),
    (2**63 - 1, 2**63, float(2**63), -(2**63)),
    (10**30, 1e30, 10**30 + 1),
    ("é", "e\u0301", "e"),
    ("x", "X", "x ", "\0", "x\0", ":", "1=1", "a.b", "名"),
    (2, -1, 0.5, 1e308),
)
SCALARS: tuple[Any, ...] = tuple(value for group in ALIKE for value in group)
FREQUENT: tuple[Any, ...] = (1, 1.0, True, False, None, "1", 0, "", "x", 2, 2**53, 2**53 + 1)
COMPOUND: tuple[Any, ...] = (
    *([], {}, [1], ["x"], [True], {"b": 1}, {"b": {"c": 1}}, {"b.c": 1}),
    *([{"b": 1}], [{"b": 1}, {"c": "x"}], [{"b": [1, {"c": 2}]}, 1, {"b": {"c": 1}}], [[{"b": 1}]]),
    *([{}], [{"b": []}], [{"b.c": 1}, {"b": None}]),
)
Nest = Literal["flat", "objects", "list", "same list"]
NESTS: tuple[Nest, ...] = ("flat", "flat", "objects", "objects", "list", "same list")
T = TypeVar("T")


def alike(value: Any) -> tuple[Any, ...]:
    """Return the group of a value, matched by type too."""
    groups = (group for group in ALIKE if any(value is member for member in group))
    return next(groups, (value,))


def put(attributes: dict[str, Any], path: str, value: Any, *, nest: Nest) -> None:
    """Set a path: as a name, in objects, or in objects of lists, one more of them or the last that
    there is. Objects in the way are kept, other values replaced.
    """
    if nest == "flat":
        attributes[path] = value
        return
    *outer, last = path.split(".")
    inside = attributes
    for step in outer:
        inside = _opened(inside, step, nest)
    inside[last] = value


def _opened(outer: dict[str, Any], step: str, nest: Nest) -> dict[str, Any]:
    """Return the object in which a path continues; copy shared values."""
    there = outer.get(step)
    inner = dict(there) if isinstance(there, dict) else {}
    if nest == "objects" and not isinstance(there, list):
        outer[step] = inner
        return inner
    several = list(there) if isinstance(there, list) else [inner] if inner else []
    if nest != "list" and several and isinstance(several[-1], dict):
        inner = dict(several.pop())
    else:
        inner = {}
    outer[step] = [*several, inner]
    return inner


def skewed(random: Random, choices: tuple[T, ...]) -> T:
    return choices[int(len(choices) * random.random() ** 2)]


# --- hypothesis ---

nests = st.sampled_from(NESTS)

texts = st.one_of(st.sampled_from(PATHS), st.text("ab.:=\0é", max_size=4))
scalars = st.one_of(
    st.sampled_from(SCALARS),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=3),
)
values = st.recursive(
    st.one_of(scalars, st.sampled_from(COMPOUND)),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=5,
)
