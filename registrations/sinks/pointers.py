"""JSON pointers (RFC 6901) into the document of an event. Plain module."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from msgspec import Meta

from eventhub.base import limits

Pointer = Annotated[
    str, Meta(max_length=limits.SINK_POINTER_CHARS_MAX, pattern=r"^(/([^~/\x00]|~[01])*)*$")
]


def path_of(pointer: str) -> list[str]:
    """Return the names and numbers of which a pointer consists."""
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def value_at(document: Any, path: Sequence[str]) -> Any:
    """Return the value at a path; None if there is none."""
    for part in path:
        if isinstance(document, Mapping):
            document = document.get(part)
        elif isinstance(document, list) and part.isdecimal() and int(part) < len(document):
            document = document[int(part)]
        else:
            return None
    return document
