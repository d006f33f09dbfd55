"""Whether any filter may match an event of a shape. A shape has the known fields of future events;
other fields may have any value. Plain module.
"""

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, TypedDict

from eventhub.base import limits
from eventhub.base.errors import EventHubError, FieldTooLong, InvalidField, UnknownField
from eventhub.event import protobuf_codec
from eventhub.event.envelope import Event
from eventhub.event.inbound import EventIn, from_objects, stored_bytes
from registrations.filters.ast import (
    Arithmetic,
    Compare,
    Const,
    Exists,
    In,
    Node,
    Not,
    OfType,
    Operand,
    Path,
    Text,
    Within,
)
from registrations.filters.closure.union import Closure
from registrations.filters.evaluate import TypeHierarchy, holds, no_supertypes
from registrations.filters.event_values import EventValues
from registrations.filters.paths import all_paths, asks_of_type, has_expression

InterestAnswer = Literal["yes", "no", "maybe"]
_TEXTS = ("domain", "type")


class ShapeJson(TypedDict, total=False):
    """The known fields of an event; other fields may have any value."""

    domain: str
    type: str
    application: str | list[str]
    attributes: dict[str, Any]
    environment: dict[str, str]


class Shape(NamedTuple):
    """A partly known event. `known`: its known fields; `whole`: all attributes and the environment
    are known.
    """

    event: Event
    known: frozenset[str]
    whole: bool = False


def parse_shape(fields: Any) -> Shape:
    """Parse a shape from JSON: `domain`, `type`, `application`, `attributes` and `environment`, all
    optional.

    A given attribute is known completely, and so is every name that begins with it and a dot.
    Raises InvalidField, UnknownField, FieldTooLong, TooDeep, NumberOutOfRange or EventTooLarge with
    the field.
    """
    if not isinstance(fields, dict):
        raise InvalidField("A shape is an object with fields of events.", field="shape")
    for name in fields:
        if name not in ShapeJson.__annotations__:
            raise UnknownField(field=f"shape.{name[: limits.NAME_CHARS_MAX]}")
    given = {name: value for name, value in fields.items() if value is not None}
    texts = {name: _text(given[name], name) for name in _TEXTS if name in given}
    objects = {
        name: _object(given[name], name) for name in ("attributes", "environment") if name in given
    }
    event = Event(
        texts.get("domain", ""),
        texts.get("type", ""),
        objects.get("attributes", {}),
        application=_application(given.get("application")),
        environment=objects.get("environment"),
    )
    _check_size(event)
    return Shape(event, frozenset(given))


def shape_of(event: dict[str, Any]) -> Shape:
    """Return the shape of an event to emit: all but the fields that the hub adds. Raises what the
    emit route raises for an invalid event.
    """
    [found] = from_objects([event])
    made = protobuf_codec.decode(stored_bytes(found, client="", mask=0))
    known = frozenset((*event, *_TEXTS, "application", "priority")) - _filled_in(made)
    return Shape(made, known, whole=True)


def _filled_in(event: Event) -> frozenset[str]:
    """Return the fields that the hub overwrites: an empty node, and a version that is empty or is
    not written as the hub writes the number.
    """
    names = {"source"}
    if not event.node:
        names.add("node")
    if not event.version or (event.version.startswith("0") and event.version.isdigit()):
        names.add("version")
    return frozenset(names)


class InterestCheck:
    """A check whether any filter may match an event of the shape, in steps; `answer` is the result
    so far. `no`: no event of the shape passes the closure; `yes`: every one passes, and the closure
    is exact; otherwise `maybe`.
    """

    def __init__(
        self, closure: Closure, shape: Shape, hierarchy: TypeHierarchy = no_supertypes
    ) -> None:
        self.answer: InterestAnswer = "no"
        self._closure = closure
        self._shape = shape
        self._values = EventValues(shape.event)
        self._hierarchy = hierarchy

    def steps(self) -> Iterator[None]:
        """Run the check; each step evaluates a test or two."""
        for parts in self._closure.form:
            verdict: bool | None = True
            for part in parts:
                verdict = _all([verdict, self._verdict(part)])
                yield
                if verdict is False:
                    break
            if verdict and not self._closure.widened:
                self.answer = "yes"
                return
            if verdict is not False:
                self.answer = "maybe"

    def _verdict(self, part: Node) -> bool | None:
        """Return the result of a part; None if it depends on unknown fields."""
        shape = self._shape
        match part:
            case Not(item):
                found = self._verdict(item)
                return None if found is None else not found
            case OfType(domain, type):
                verdicts = []
                if domain is not None:
                    known = "domain" in shape.known
                    verdicts.append(shape.event.domain == domain if known else None)
                if type is not None:
                    verdicts.append(self._of_type(OfType(None, type, part.below)))
                return _all(verdicts)
            case Compare(_, left, right):
                known = _known(left, shape) and _known(right, shape)
            case In(path) | Text(_, path) | Exists(path):
                known = _known(path, shape)
            case Within():
                paths = all_paths(part)
                known = not asks_of_type(part) and not has_expression(part)
                known = known and all(_known(path, shape) for path in paths)
            case _:
                known = False
        return holds(part, self._values, self._hierarchy) if known else None

    def _of_type(self, part: OfType) -> bool | None:
        """Evaluate a type test. A supertype counts once the hub checks events against the
        declaration, which may be a moment later, so until then the result is unknown.
        """
        if "type" not in self._shape.known:
            return None
        if holds(part, self._values):
            return True
        return None if holds(part, self._values, self._hierarchy) else False


def interest_in(
    closure: Closure, shape: Shape, hierarchy: TypeHierarchy = no_supertypes
) -> InterestAnswer:
    """Return whether any filter may match an event of the shape (see `InterestCheck`)."""
    check = InterestCheck(closure, shape, hierarchy)
    for _ in check.steps():
        pass
    return check.answer


def _all(verdicts: list[bool | None]) -> bool | None:
    if False in verdicts:
        return False
    return None if None in verdicts else True


def _known(operand: Operand, shape: Shape) -> bool:
    match operand:
        case Const():
            return True
        case Arithmetic(_, left, right):
            return _known(left, shape) and _known(right, shape)
        case Path(name, "attributes"):
            attributes = shape.event.attributes
            return shape.whole or name in attributes or name.partition(".")[0] in attributes
        case Path(name, "environment"):
            return shape.whole or name in (shape.event.environment or {})
        case Path(name, "envelope"):
            return name in shape.known
    return False


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidField(f"`{name}` is a text.", field=f"shape.{name}")
    if len(value) > limits.TEXT_CHARS_MAX:
        raise FieldTooLong(field=f"shape.{name}", chars_max=limits.TEXT_CHARS_MAX)
    return value


def _object(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidField(f"`{name}` is an object.", field=f"shape.{name}")
    return value


def _check_size(event: Event) -> None:
    """Check that a shape is no larger than an event, so that it costs no more than matching one."""
    given = EventIn("-", "-", event.attributes, environment=event.environment or {})
    try:
        stored_bytes(given, client="", mask=0)
    except EventHubError as error:
        error.field = f"shape.{error.field}" if error.field else "shape"
        raise


def _application(value: Any) -> tuple[str, ...]:
    found = [value] if isinstance(value, str) else value
    if found is None:
        return ()
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise InvalidField("`application` is a text or a list of texts.", field="shape.application")
    return tuple(found)
