"""The lines of a bulk request: split from arriving bytes in bounded memory, and parsed. Plain
module.

A line creates, changes or ends one registration, independently of the other lines.
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
_REFERENCE = ("id", "key")


class RegistrationReference(NamedTuple):
    """The registration that a line names: by its id, or by the client's key for it."""

    id: int | None
    key: str | None


class CreateLine(NamedTuple):
    item: NewRegistration

    @property
    def reference(self) -> RegistrationReference:
        return RegistrationReference(None, self.item.key)


class ChangeLine(NamedTuple):
    reference: RegistrationReference
    item: RegistrationChange


class EndLine(NamedTuple):
    reference: RegistrationReference


LineOperation = CreateLine | ChangeLine | EndLine


class Line(NamedTuple):
    """A line by its number, from 1 on: its operation, or the error in it."""

    number: int
    operation: LineOperation | EventHubError


class LineSplitter:
    """Splits bytes into lines. Of a line that is too long only the number is retained."""

    def __init__(self) -> None:
        self.number = 0  # of the last complete line
        self._partial = bytearray()
        self._too_long = False

    def feed(self, chunk: bytes) -> Iterator[tuple[int, bytes | None]]:
        """Yield the lines that the chunk completes; None for a line that is too long."""
        at = 0
        while (end := chunk.find(b"\n", at)) >= 0:
            self._append(chunk[at:end])
            yield self._finish_line()
            at = end + 1
        self._append(chunk[at:])

    def rest(self) -> Iterator[tuple[int, bytes | None]]:
        """Yield the last line, if it has no line end."""
        if self._partial or self._too_long:
            yield self._finish_line()

    def _append(self, part: bytes) -> None:
        if self._too_long or len(self._partial) + len(part) > limits.BULK_LINE_BYTES_MAX:
            self._too_long = True
            self._partial.clear()
        else:
            self._partial += part

    def _finish_line(self) -> tuple[int, bytes | None]:
        line = None if self._too_long else bytes(self._partial)
        self._partial.clear()
        self._too_long = False
        self.number += 1
        return self.number, line


def read_line(number: int, text: bytes | None, addresses: CallbackAddresses) -> Line:
    """Parse a line; an error becomes its operation."""
    try:
        if text is None:
            message = f"A line has at most {limits.BULK_LINE_BYTES_MAX:,} bytes; shorten this one."
            raise BodyTooLarge(message, bytes_max=limits.BULK_LINE_BYTES_MAX)
        fields = parse_json(text)
        if not isinstance(fields, dict):
            raise InvalidField("A line is a JSON object with its `op`.")
        return Line(number, _parse(fields, addresses))
    except EventHubError as error:
        return Line(number, error)


def _parse(fields: dict[str, Any], addresses: CallbackAddresses) -> LineOperation:
    op = fields.pop("op", None)
    if op not in OPS:
        raise InvalidField(f"`op` is one of {', '.join(OPS)}.", field="op")
    if op == "create":
        return CreateLine(parse_one(fields, addresses))
    reference = RegistrationReference(number_of(fields.get("id"), "id"), key_of(fields.get("key")))
    if (reference.id is None) == (reference.key is None):
        raise MissingField("Name the registration by its `id` or by its `key`.", field="id")
    others = {name: value for name, value in fields.items() if name not in _REFERENCE}
    if op == "change":
        return ChangeLine(reference, parse_change(others))
    object_of(others, frozenset())
    return EndLine(reference)
