"""Would anybody want an event of this shape? A shape is what is known of events before there are
any: the rest may be anything. Plain module.
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
from registrations.filters.paths import all_paths, asks_of_type

Interested = Literal["yes", "no", "maybe"]
_TEXTS = ("domain", "type")


class ShapeJson(TypedDict, total=False):
    """What is known of an event; the rest may be anything."""

    domain: str
    type: str
    application: str | list[str]
    attributes: dict[str, Any]
    environment: dict[str, str]


class Shape(NamedTuple):
    """An event as far as it is known. `known`: the fields of it that are; `whole`: so are all
    attributes and the environment.
    """

    event: Event
    known: frozenset[str]
    whole: bool = False


def parse_shape(fields: Any) -> Shape:
    """From JSON: `domain`, `type`, `application`, `attributes`, `environment`, each or none.

    An attribute that is given is known with all that is in it, and so is every name that begins
    with it and a dot. Raises with the field InvalidField, UnknownField, FieldTooLong, TooDeep,
    NumberOutOfRange, EventTooLarge.
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
    """Of an event that is about to be emitted: all but what the hub adds to it. Raises what the
    emit door raises for a wrong one.
    """
    [found] = from_objects([event])
    made = protobuf_codec.decode(stored_bytes(found, client="", mask=0))
    known = frozenset((*event, *_TEXTS, "application", "priority")) - _filled_in(made)
    return Shape(made, known, whole=True)


def _filled_in(event: Event) -> frozenset[str]:
    """What the hub writes itself, though the emitter names it: the node where it is empty, and the
    version of a declared type where it is empty, or not as the hub writes that number.
    """
    names = {"source"}
    if not event.node:
        names.add("node")
    if not event.version or (event.version.startswith("0") and event.version.isdigit()):
        names.add("version")
    return frozenset(names)


class Question:
    """Whether anybody wants an event of the shape, found out step by step; `answer` is that of the
    steps so far. `no`: no event of the shape passes the closure; `yes`: every one does, and the
    closure is exact; else `maybe`.
    """

    def __init__(
        self, closure: Closure, shape: Shape, hierarchy: TypeHierarchy = no_supertypes
    ) -> None:
        self.answer: Interested = "no"
        self._closure = closure
        self._shape = shape
        self._values = EventValues(shape.event)
        self._hierarchy = hierarchy

    def steps(self) -> Iterator[None]:
        """Each looks at a test or two."""
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
        """None: it depends on what is not known."""
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
                known = not asks_of_type(part) and all(_known(path, shape) for path in paths)
            case _:
                known = False
        return holds(part, self._values, self._hierarchy) if known else None

    def _of_type(self, part: OfType) -> bool | None:
        """A declared type above the event's counts once the hub checks events by the declaration,
        which may be a moment later.
        """
        if "type" not in self._shape.known:
            return None
        if holds(part, self._values):
            return True
        return None if holds(part, self._values, self._hierarchy) else False


def wanted(closure: Closure, shape: Shape, hierarchy: TypeHierarchy = no_supertypes) -> Interested:
    """The answer to such a question."""
    question = Question(closure, shape, hierarchy)
    for _ in question.steps():
        pass
    return question.answer


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
    """No shape is larger than an event, so that asking costs no more than matching one."""
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
