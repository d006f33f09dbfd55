"""Would anybody want an event of this shape? A shape is what is known of events before there are
any: the rest may be anything. Plain.
"""

from typing import Any, Literal, NamedTuple

from eventhub import limits
from eventhub.errors import FieldTooLong, InvalidField, UnknownField
from eventhub.event import protobuf_codec
from eventhub.event.envelope import Event
from eventhub.event.inbound import from_objects, stored_bytes
from registrations.closure.union import Closure
from registrations.lang.ast import (
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
)
from registrations.lang.evaluate import Kin, holds, only_itself

Wanted = Literal["yes", "no", "maybe"]
_TEXTS = ("domain", "type")
_FIELDS = (*_TEXTS, "application", "attributes", "environment")


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
    with it and a dot. Raises with the field InvalidField, UnknownField, FieldTooLong.
    """
    if not isinstance(fields, dict):
        raise InvalidField("A shape is an object with fields of events.", field="shape")
    for name in fields:
        if name not in _FIELDS:
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
    return Shape(event, frozenset(given))


def shape_of(event: dict[str, Any]) -> Shape:
    """Of an event that is about to be emitted: all but what the hub adds to it. Raises what the
    emit door raises for a wrong one.
    """
    [found] = from_objects([event])
    made = protobuf_codec.decode(stored_bytes(found, client="", mask=0))
    return Shape(made, frozenset((*event, *_TEXTS, "application", "priority")), whole=True)


def wanted(closure: Closure, shape: Shape, kin: Kin = only_itself) -> Wanted:
    """`no`: no event of the shape passes the closure; `yes`: every one does, and the closure is
    exact; else `maybe`.
    """
    found: Wanted = "no"
    for parts in closure.form:
        verdicts = {_verdict(part, shape, kin) for part in parts}
        if False in verdicts:
            continue
        if None not in verdicts and not closure.widened:
            return "yes"
        found = "maybe"
    return found


def _verdict(part: Node, shape: Shape, kin: Kin) -> bool | None:
    """None: it depends on what is not known."""
    match part:
        case Not(item):
            found = _verdict(item, shape, kin)
            return None if found is None else not found
        case OfType(domain, type):
            verdicts = []
            if domain is not None:
                known = "domain" in shape.known
                verdicts.append(shape.event.domain == domain if known else None)
            if type is not None:
                verdicts.append(_of_type(OfType(None, type, part.below), shape, kin))
            return _all(verdicts)
        case Compare(_, left, right):
            known = _known(left, shape) and _known(right, shape)
        case In(path) | Text(_, path) | Exists(path):
            known = _known(path, shape)
        case _:
            known = False
    return holds(part, shape.event, kin) if known else None


def _of_type(part: OfType, shape: Shape, kin: Kin) -> bool | None:
    """A declared type above the event's counts once the hub checks events by the declaration, which
    may be a moment later.
    """
    if "type" not in shape.known:
        return None
    if holds(part, shape.event):
        return True
    return None if holds(part, shape.event, kin) else False


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


def _application(value: Any) -> tuple[str, ...]:
    found = [value] if isinstance(value, str) else value
    if found is None:
        return ()
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise InvalidField("`application` is a text or a list of texts.", field="shape.application")
    return tuple(found)
