"""The abstract syntax tree (AST) that every filter language is parsed into. Plain module.

A node has its position in the source text; comparisons of nodes ignore it. Filters that mean the
same but are written differently are different trees (normal.py compares their meaning).
"""

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from registrations.filters.letter_case import in_one_case
from registrations.filters.wildcard import wildcard_parts

Scalar = str | int | float | bool | None  # a JSON scalar; integers have 64 bits
Space = Literal["attributes", "envelope", "environment"]
Comparison = Literal["=", "!=", "<", "<=", ">", ">="]
FLIPPED: dict[Comparison, Comparison] = {  # the same relation with its sides exchanged
    **{"=": "=", "!=": "!="},
    **{"<": ">", "<=": ">=", ">": "<", ">=": "<="},
}
TextTest = Literal[
    "prefix",
    "suffix",
    "substring",
    "wildcard",
    "equals-ignore-case",
    "prefix-ignore-case",
    "suffix-ignore-case",
    "cidr",
]
ExpressionLanguage = Literal["cesql", "cel"]
IGNORING_CASE = ("equals-ignore-case", "prefix-ignore-case", "suffix-ignore-case")


class TextPosition(NamedTuple):
    """A line and a column of a text, both from 1; columns count characters."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Path:
    """A field of the event: an attribute, a field of the envelope (`@type`) or of the environment
    (`env.trace`). An attribute is looked up by its exact name first, then by its dotted path into
    objects.
    """

    name: str
    space: Space = "attributes"
    position: TextPosition | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Const:
    """A constant. `kind` separates 1 from true and from 1.0, which are equal in Python; the two
    numbers differ in arithmetic.
    """

    value: Scalar
    position: TextPosition | None = field(default=None, compare=False, repr=False)
    kind: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", kind_of(self.value))


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """An operation on two numbers. It has no result for other values or a division by zero."""

    op: Literal["+", "-", "*", "/"]
    left: "Operand"
    right: "Operand"
    position: TextPosition | None = field(default=None, compare=False, repr=False)


Operand = Path | Const | Arithmetic


@dataclass(frozen=True, slots=True)
class Compare:
    """A relation of two operands; false when either is missing."""

    op: Comparison
    left: Operand
    right: Operand
    position: TextPosition | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class In:
    """A test that a path has one of several values, by `=`."""

    path: Path
    values: tuple[Const, ...]
    position: TextPosition | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Text:
    """A test of a text (text_tests.py). In a wildcard, `*` matches any characters and a backslash
    escapes `*` and itself. `parts`: the texts between the stars of a wildcard, or the text in lower
    case of a test that ignores case. Raises ValueError for a wildcard with a lone backslash.
    """

    op: TextTest
    path: Path
    text: str
    position: TextPosition | None = field(default=None, compare=False, repr=False)
    parts: tuple[str, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        parts = wildcard_parts(self.text) if self.op == "wildcard" else ()
        if self.op in IGNORING_CASE:
            parts = (in_one_case(self.text),)
        object.__setattr__(self, "parts", parts)


@dataclass(frozen=True, slots=True)
class Exists:
    """A test that a path exists, with any value, including null."""

    path: Path
    position: TextPosition | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Within:
    """A test that one object at a path satisfies all of `item`, whose paths are relative to that
    object: the object at the path, or one member of a list there (languages.md, "Objects in
    lists"). The path is into the attributes, by its steps.
    """

    path: Path
    item: "Node"
    position: TextPosition | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class OfType:
    """A test that the event has a type or a declared subtype of it (RDY-13, RDY-44). None matches
    any; `below` matches the types whose names begin with `type` and a dot (RDY-14).
    """

    domain: str | None
    type: str | None
    below: bool = False
    position: TextPosition | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression of CESQL or CEL that no other node can express; it holds if its value is true.
    It is evaluated as its language says (expressions.py). `program`: what it is parsed into, at its
    first use.
    """

    language: ExpressionLanguage
    text: str
    position: TextPosition | None = field(default=None, compare=False, repr=False)
    program: Any = field(default=None, init=False, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class And:
    items: tuple["Node", ...]
    position: TextPosition | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Or:
    items: tuple["Node", ...]
    position: TextPosition | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Not:
    item: "Node"
    position: TextPosition | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Truth:
    """A constant filter: it matches every event, or none."""

    value: bool
    position: TextPosition | None = field(default=None, compare=False, repr=False)


Node = Compare | In | Text | Exists | Within | OfType | Expression | And | Or | Not | Truth


def kind_of(value: Scalar) -> str:
    """Return `null`, `boolean`, `integer`, `number` or `text`."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    return "text" if isinstance(value, str) else "number"
