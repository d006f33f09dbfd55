"""The abstract syntax tree of READY's compound patterns (RDY-20 to RDY-34). Plain module.

A node has its position in the source text; comparisons of nodes ignore it. What the nodes mean is
in docs/patterns.md.
"""

from dataclasses import dataclass, field
from typing import Literal

from registrations.filters.ast import Node, Operand, Path, TextPosition

Operator = Literal["&&", "||", ";", "butnot"]


@dataclass(frozen=True, slots=True)
class Element:
    """One event that passes a filter, or a sequence of such events (RDY-25).

    A sequence has `least` to `most` events; None: no upper bound. `variable`: "" for none.
    """

    node: Node
    variable: str = ""
    is_sequence: bool = False
    least: int = 1
    most: int | None = 1
    position: TextPosition | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Combined:
    """Two parts joined by an operator."""

    operator: Operator
    left: "Part"
    right: "Part"
    position: TextPosition | None = field(default=None, compare=False, repr=False)


SetFunction = Literal[
    "count", "sum", "min", "max", "avg", "span", "first", "last", "distinct", "counter"
]


@dataclass(frozen=True, slots=True)
class VariablePath(Path):
    """What an expression reads of a variable: a component, the variable itself, or a function of
    either. `name`: its text, by which an evaluation finds the value.
    """

    variable: str = ""  # of the function `counter` it is the counter
    component: Path | None = None
    function: SetFunction | None = None


@dataclass(frozen=True, slots=True)
class Where:
    """A part whose matches must meet a condition over its variables (RDY-28)."""

    part: "Part"
    condition: Node
    position: TextPosition | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class NewEventForm:
    """An event to create: its type and its attributes. `domain`: "" for none."""

    domain: str
    type: str
    attributes: tuple[tuple[str, Operand], ...]


@dataclass(frozen=True, slots=True)
class AssignAction:
    """Bind a variable to a new event (RDY-31)."""

    variable: str
    event: NewEventForm
    position: TextPosition | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class NotifyAction:
    """Deliver what variables are bound to (RDY-32). None: all variables of the part."""

    variables: tuple[str, ...] | None = None
    target: str | None = None
    position: TextPosition | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class AnnounceAction:
    """Emit a new event, or the one that a variable was assigned (RDY-33)."""

    event: NewEventForm | str
    stream: str | None = None
    position: TextPosition | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class IncrementAction:
    """Add a number to a counter of the pattern (RDY-34)."""

    counter: str
    by: Operand
    position: TextPosition | None = field(default=None, compare=False, repr=False)


Action = AssignAction | NotifyAction | AnnounceAction | IncrementAction


@dataclass(frozen=True, slots=True)
class Do:
    """A part with the actions that run when it matches (RDY-30)."""

    part: "Part"
    actions: tuple[Action, ...]
    position: TextPosition | None = field(default=None, compare=False, repr=False)


Part = Element | Combined | Where | Do


@dataclass(frozen=True, slots=True)
class Pattern:
    """A whole pattern. None: the default of the hub.

    `within_us`: a match spans at most this time. `last`: and this many events of the pattern.
    `per`: the component whose values separate the events into partitions. `once`: it ends with its
    first match.
    """

    part: Part
    within_us: int | None = None
    last: int | None = None
    per: Path | None = None
    once: bool = False


def parts_of(part: Part) -> tuple[Part, ...]:
    """Return the parts directly inside a part."""
    if isinstance(part, Combined):
        return part.left, part.right
    return () if isinstance(part, Element) else (part.part,)


def elements_of(part: Part) -> tuple[Element, ...]:
    """Return the elements of a part, in the order of the text."""
    if isinstance(part, Element):
        return (part,)
    return tuple(found for inner in parts_of(part) for found in elements_of(inner))
