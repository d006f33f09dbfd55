"""The lines of a bulk request: cut out of what arrives, in bounded memory, and read. Plain module.

A line is one registration's creation, change or end, and stands for itself.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from eventhub.base import limits
from eventhub.base.errors import BodyTooLarge, EventHubError, InvalidField, MissingField
from eventhub.base.strict_json import parse_json
from registrations.endpoints.addresses import CallbackAddresses
from registrations.requests import (
    NewRegistration,
    RegistrationChange,
    key_of,
    number_of,
    object_of,
    parse_change,
    parse_one,
)

OPS = ("create", "change", "end")
_TARGET = ("id", "key")


class Target(NamedTuple):
    """The registration that a line is about: by its ticket, or by the client's key for it."""

    id: int | None
    key: str | None


class Create(NamedTuple):
    item: NewRegistration

    @property
    def target(self) -> Target:
        return Target(None, self.item.key)


class Change(NamedTuple):
    target: Target
    item: RegistrationChange


class End(NamedTuple):
    target: Target


Act = Create | Change | End


class Line(NamedTuple):
    """A line by its number, from 1 on: what it asks for, or why it cannot be read."""

    number: int
    asked: Act | EventHubError


class Cutter:
    """Cuts bytes into lines. Of a line that is too long only its number is kept."""

    def __init__(self) -> None:
        self.number = 0  # of the last line that is complete
        self._begun = bytearray()
        self._too_long = False

    def feed(self, chunk: bytes) -> Iterator[tuple[int, bytes | None]]:
        """The lines that are complete by now; None for one that is too long."""
        at = 0
        while (end := chunk.find(b"\n", at)) >= 0:
            self._take(chunk[at:end])
            yield self._cut()
            at = end + 1
        self._take(chunk[at:])

    def rest(self) -> Iterator[tuple[int, bytes | None]]:
        """The last line, if no line end came after it."""
        if self._begun or self._too_long:
            yield self._cut()

    def _take(self, part: bytes) -> None:
        if self._too_long or len(self._begun) + len(part) > limits.BULK_LINE_BYTES_MAX:
            self._too_long = True
            self._begun.clear()
        else:
            self._begun += part

    def _cut(self) -> tuple[int, bytes | None]:
        line = None if self._too_long else bytes(self._begun)
        self._begun.clear()
        self._too_long = False
        self.number += 1
        return self.number, line


def read_line(number: int, text: bytes | None, addresses: CallbackAddresses) -> Line:
    """A line with what it asks for."""
    try:
        if text is None:
            message = f"A line has at most {limits.BULK_LINE_BYTES_MAX:,} bytes; shorten it."
            raise BodyTooLarge(message, bytes_max=limits.BULK_LINE_BYTES_MAX)
        fields = parse_json(text)
        if not isinstance(fields, dict):
            raise InvalidField("A line is a JSON object with its `op`.")
        return Line(number, _parse(fields, addresses))
    except EventHubError as error:
        return Line(number, error)


def _parse(fields: dict[str, Any], addresses: CallbackAddresses) -> Act:
    op = fields.pop("op", None)
    if op not in OPS:
        raise InvalidField(f"`op` is one of {', '.join(OPS)}.", field="op")
    if op == "create":
        return Create(parse_one(fields, addresses))
    target = Target(number_of(fields.get("id"), "id"), key_of(fields.get("key")))
    if (target.id is None) == (target.key is None):
        raise MissingField("Name the registration by its `id` or by its `key`.", field="id")
    others = {name: value for name, value in fields.items() if name not in _TARGET}
    if op == "change":
        return Change(target, parse_change(others))
    object_of(others, frozenset())
    return End(target)
