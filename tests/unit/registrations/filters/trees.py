"""Random filters and events for them, from one vocabulary, so that many pairs match."""

from typing import Any

from hypothesis import strategies as st

from eventhub.event.envelope import Event
from registrations.filters.ast import (
    And,
    Arithmetic,
    Compare,
    Const,
    Exists,
    Expression,
    In,
    Node,
    Not,
    OfType,
    Operand,
    Or,
    Path,
    Scalar,
    Text,
    Truth,
    Within,
)

NAMES = (
    "a",
    "b",
    "a.b",
    "size",
    "a b",
    "",
    "5",
    "true",
    "@type",
    "env.x",
    "`",
    "\\",
    '"',
    "\x01",
    "é",
)
VALUES: tuple[Scalar, ...] = (
    *(0, 1, 1.0, -1, 2.5, 10, 2**53 + 1, 2**63 - 1, 2**64 - 1, True, False, None),
    *("", "1", "10", "9", "a", "ab", "b", "é", "\x00", '"\\', "\ufffd", "😀"),
)
TYPES = ("a", "b", "a.b", "b.a.a")

names = st.sampled_from(NAMES)
values: st.SearchStrategy[Scalar] = st.one_of(
    st.sampled_from(VALUES),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=4),
)
paths = st.one_of(
    names.map(Path),
    st.text(max_size=3).map(Path),
    st.sampled_from(("domain", "type", "application", "priority")).map(
        lambda name: Path(name, "envelope")
    ),
    st.sampled_from(("trace", "a.b")).map(lambda name: Path(name, "environment")),
)
constants = values.map(Const)
operands: st.SearchStrategy[Operand] = st.recursive(
    st.one_of(paths, constants),
    lambda inner: st.builds(Arithmetic, st.sampled_from("+-*/"), inner, inner),
    max_leaves=4,
)
wildcards = st.sampled_from(("*", "a*", "*b", "a*b", "\\*", "*1*", ""))
tests: st.SearchStrategy[Node] = st.one_of(
    st.builds(Compare, st.sampled_from(("=", "!=", "<", "<=", ">", ">=")), operands, operands),
    st.builds(Compare, st.just("="), names.map(Path), st.sampled_from(VALUES).map(Const)),
    st.builds(In, paths, st.lists(constants, min_size=1, max_size=3).map(tuple)),
    st.builds(Text, st.sampled_from(("prefix", "suffix", "substring")), paths, st.text(max_size=2)),
    st.builds(Text, st.just("wildcard"), paths, wildcards),
    st.builds(Exists, paths),
    st.sampled_from(
        (
            Expression("cesql", 'a = b OR\n"\\"" <> a'),
            Expression("cesql", "LENGTH(a) > size"),
            Expression("cel", "size(a) > 1 || a.b == size"),
        )
    ),
    st.builds(OfType, st.sampled_from((None, *TYPES)), st.sampled_from(TYPES), st.booleans()),
    st.builds(OfType, st.sampled_from((None, *TYPES)), st.none()),
    st.booleans().map(Truth),
)


def _joined(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    several = st.lists(inner, min_size=1, max_size=3).map(tuple)
    inside = st.builds(Within, names.map(Path), inner)
    return st.one_of(several.map(And), several.map(Or), inner.map(Not), inside)


trees = st.recursive(tests, _joined, max_leaves=8)
members = st.one_of(st.sampled_from(VALUES), values)
_objects: st.SearchStrategy[Any] = st.recursive(
    st.dictionaries(names, members, max_size=3),
    lambda inner: st.dictionaries(names, st.one_of(inner, st.lists(inner, max_size=2)), max_size=2),
    max_leaves=3,
)
contents: st.SearchStrategy[Any] = st.one_of(
    members,
    st.lists(members, max_size=3),
    st.dictionaries(names, members, max_size=2),
    st.lists(st.one_of(members, _objects), max_size=3),
)
events = st.builds(
    Event,
    st.sampled_from(TYPES),
    st.sampled_from(TYPES),
    st.dictionaries(names, contents, max_size=5),
    application=st.lists(st.sampled_from(TYPES), max_size=2).map(tuple),
    environment=st.one_of(st.none(), st.dictionaries(st.just("trace"), st.text(max_size=2))),
    priority=st.sampled_from((0, 1, 10)),
)


def event(attributes: dict[str, Any] | None = None, **fields: Any) -> Event:
    """Return an event with defaults for the rest."""
    fields = {"domain": "d", "type": "t", **fields}
    return Event(attributes=attributes or {}, **fields)
