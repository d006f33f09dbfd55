"""The one tree that every filter language is read into. Plain module.

A node knows the place in the text it came from, which does not count when nodes are compared; two
filters that say the same in other words differ as trees (see normal.py for what they have in
common).
"""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from registrations.filters.wildcard import wildcard_parts

Scalar = str | int | float | bool | None  # what a constant is: JSON's, integers of 64 bits
Space = Literal["attributes", "envelope", "environment"]
Comparison = Literal["=", "!=", "<", "<=", ">", ">="]
FLIPPED: dict[Comparison, Comparison] = {  # with its sides exchanged each is another one
    **{"=": "=", "!=": "!="},
    **{"<": ">", "<=": ">=", ">": "<", ">=": "<="},
}
TextTest = Literal["prefix", "suffix", "substring", "wildcard"]


class Place(NamedTuple):
    """Where something stands in a text; both from 1, columns in characters."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Path:
    """A field of the event: of its attributes the exact name first, then dotted into objects; of
    its envelope (`@type`) or its environment (`env.trace`) a name.
    """

    name: str
    space: Space = "attributes"
    place: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Const:
    """A value. `kind` keeps 1 apart from true and from 1.0, as Python does not: in arithmetic the
    two numbers differ.
    """

    value: Scalar
    place: Place | None = field(default=None, compare=False, repr=False)
    kind: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", kind_of(self.value))


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Two numbers made one; of anything else, and of a division by zero, nothing comes."""

    op: Literal["+", "-", "*", "/"]
    left: "Operand"
    right: "Operand"
    place: Place | None = field(default=None, compare=False, repr=False)


Operand = Path | Const | Arithmetic


@dataclass(frozen=True, slots=True)
class Compare:
    """Two operands in a relation; false when either is missing."""

    op: Comparison
    left: Operand
    right: Operand
    place: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class In:
    """A path has one of the values, by `=`."""

    path: Path
    values: tuple[Const, ...]
    place: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Text:
    """A test of a text. In a wildcard `*` stands for any characters, a backslash before `*` and
    itself for the one behind it. `parts`: of a wildcard what stands between its stars. Raises
    ValueError for a lone backslash in one.
    """

    op: TextTest
    path: Path
    text: str
    place: Place | None = field(default=None, compare=False, repr=False)
    parts: tuple[str, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        parts = wildcard_parts(self.text) if self.op == "wildcard" else ()
        object.__setattr__(self, "parts", parts)


@dataclass(frozen=True, slots=True)
class Exists:
    """The path is there, whatever its value, null too."""

    path: Path
    place: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Within:
    """One object at a path holds the whole of `item`, whose paths begin in that object: the object
    that stands there, or one member of a list (languages.md, "Objects in lists"). The path is into
    the attributes, by its steps.
    """

    path: Path
    item: "Node"
    place: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class OfType:
    """The event is of a type or of a declared subtype of it (RDY-13, RDY-44). None: any; `below`:
    of the types whose names begin with `type` and a dot (RDY-14).
    """

    domain: str | None
    type: str | None
    below: bool = False
    place: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class And:
    items: tuple["Node", ...]
    place: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Or:
    items: tuple["Node", ...]
    place: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Not:
    item: "Node"
    place: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Truth:
    """Every event, or none."""

    value: bool
    place: Place | None = field(default=None, compare=False, repr=False)


Node = Compare | In | Text | Exists | Within | OfType | And | Or | Not | Truth


def kind_of(value: Scalar) -> str:
    """`null`, `boolean`, `integer`, `number` or `text`."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    return "text" if isinstance(value, str) else "number"
