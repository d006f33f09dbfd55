"""References to remote objects among the values of an event: `{"$ref": "https://host/pumps/7"}`,
an object with one field, an absolute URI (OIF-15). Plain module.
"""

import re
from collections.abc import Iterator
from typing import Any

from eventhub.base import errors, limits

REFERENCE = "$ref"
MARK = b'$ref"'  # in the JSON of all attributes that have a reference, or a name that ends so
_SUFFIX = f".{REFERENCE}"

# as in RFC 3986, with characters beyond ASCII as in RFC 3987
_URI = re.compile(r'[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20\x7f"<>\\^`{|}\s]+')


def is_reference(value: dict[str, Any]) -> bool:
    return len(value) == 1 and REFERENCE in value


def check_references(attributes: dict[str, Any], field: str) -> None:
    """Check each reference in the attributes of an event. They are none themselves, and none has a
    name that ends as the path to a reference does: filters would read it in place of the reference.
    Raises InvalidField with the path of a bad one.
    """
    for name in attributes:
        if name == REFERENCE or name.endswith(_SUFFIX):
            message = (
                f"The name of an attribute is not `{REFERENCE}` and does not end in `{_SUFFIX}`"
            )
            raise errors.InvalidField(
                f"{message}; send a reference as the value of an attribute.",
                field=f"{field}.{name}"[:300],
            )
    _check_objects(attributes, field)


def _check_objects(value: dict[str, Any], field: str) -> None:
    for path, inner in _objects(value, field):
        if REFERENCE in inner:
            _check(inner, path)
        _check_objects(inner, path)


def _objects(value: dict[str, Any] | list[Any], field: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the objects of an object or a list, also those in lists, with their paths."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for name, inner in items:
        if isinstance(inner, dict):
            yield f"{field}.{name}", inner
        elif isinstance(inner, list):
            yield from _objects(inner, f"{field}.{name}")


def _check(value: dict[str, Any], field: str) -> None:
    target = value[REFERENCE]
    if len(value) > 1:
        message = f"A reference has only the field `{REFERENCE}`; put other fields next to it."
    elif not isinstance(target, str) or not _URI.fullmatch(target):
        message = "A reference is an absolute URI, as in https://host/pumps/7."
    elif len(target) > limits.REFERENCE_CHARS_MAX:
        message = f"A reference has at most {limits.REFERENCE_CHARS_MAX:,} characters."
    else:
        return
    raise errors.InvalidField(message, field=f"{field}.{REFERENCE}"[:300])
