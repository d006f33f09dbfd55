"""The pairs language: a domain, a type, an application and attributes that an event must equal
(SUN-01, SUN-03, FOX-03). Plain module.

A name is a path into `attributes`: the exact name first, then a dotted path into nested objects.
Values keep their JSON type: 1 equals 1.0, but neither "1" nor true; a list has the values of its
members. The body is `data` (RDY-10).
"""

from dataclasses import dataclass
from typing import Any

from eventhub.base import limits
from eventhub.base.errors import BodyNotFilterable, FieldTooLong, InvalidField, UnknownField
from eventhub.event.envelope import Event
from eventhub.event.filterable import filterable, is_in_data
from registrations.filters.ast import Scalar
from registrations.filters.bounds import check_number
from registrations.filters.values import MISSING, members, same, value_at

FIELDS = ("domain", "type", "application", "attributes")


@dataclass(frozen=True, slots=True)
class Pairs:
    """A filter for events of a domain, a type and an application (None: any) whose attributes have
    all the pairs.
    """

    domain: str | None = None
    type: str | None = None
    attributes: tuple[tuple[str, Scalar], ...] = ()
    application: str | None = None  # one of the event's applications (FOX-03)

    @property
    def everything(self) -> bool:
        return self == Pairs()

    def matches(self, event: Event) -> bool:
        """Return whether the event has all the pairs."""
        if self.domain is not None and event.domain != self.domain:
            return False
        if self.type is not None and event.type != self.type:
            return False
        if self.application is not None and self.application not in event.application:
            return False
        if event.filterable_data and any(is_in_data(path) for path, _ in self.attributes):
            event = filterable(event)
        return all(_has(event.attributes, path, value) for path, value in self.attributes)


def parse_pairs(fields: dict[str, Any]) -> Pairs:
    """Parse pairs from the JSON fields `domain`, `type`, `application`, `attributes`.

    Raises BodyNotFilterable, UnknownField, InvalidField, FieldTooLong or NumberOutOfRange with the
    field.
    """
    for name in fields:
        if name in ("body", "body_base64"):
            raise BodyNotFilterable(field=name)
        if name not in FIELDS:
            raise UnknownField(field=name)
    attributes = fields.get("attributes")
    attributes = {} if attributes is None else attributes
    if not isinstance(attributes, dict):
        raise InvalidField("`attributes` is an object of names and values.", field="attributes")
    if len(attributes) > limits.PAIRS_MAX:
        message = (
            f"A filter has at most {limits.PAIRS_MAX} pairs; other languages allow more tests."
        )
        raise FieldTooLong(message, field="attributes", pairs_max=limits.PAIRS_MAX)
    for name, value in attributes.items():
        if len(name) > limits.PATH_CHARS_MAX:
            message = (
                f"A path has at most {limits.PATH_CHARS_MAX:,} characters; use a shorter name."
            )
            raise FieldTooLong(message, field="attributes", chars_max=limits.PATH_CHARS_MAX)
        if isinstance(value, dict | list):
            message = "A pair's value is a text, a number, true, false or null; use a dotted path."
            raise InvalidField(message, field=f"attributes.{name}")
        check_number(value, f"attributes.{name}")
    domain, type, application = (_text(fields, name) for name in FIELDS[:3])
    return Pairs(domain, type, tuple(attributes.items()), application)


def _has(attributes: dict[str, Any], path: str, value: Scalar) -> bool:
    found = value_at(attributes, path)
    if isinstance(found, list | tuple):  # `in` skips most lists at once
        return value in found and any(same(one, value) for one in members(found))
    return found is not MISSING and same(found, value)


def _text(fields: dict[str, Any], name: str) -> str | None:
    value = fields.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not value:
        raise InvalidField(f"`{name}` is a text.", field=name)
    if len(value) > limits.TEXT_CHARS_MAX:
        raise FieldTooLong(field=name, chars_max=limits.TEXT_CHARS_MAX)
    return value
