"""The event's fields as CloudEvents extensions: names of a-z and 0-9, values that are texts,
32-bit integers or booleans. Plain module.

An attribute whose name and value fit is an extension of its own name. All others go unchanged into
one extension, a JSON object.
"""

import base64
import re
from typing import Any

import msgspec
import orjson

from eventhub.base import errors
from eventhub.event.envelope import DEFAULT_MASK, Event
from eventhub.event.json_codec import time_text

DEFAULT_DOMAIN = "cloudevents"  # of an event without a domain

# the extension, by the field's name in requests and in the envelope
_TEXTS = {
    "domain": "domain",
    "correlation": "correlationid",
    "cause": "causationid",
    "traceparent": "traceparent",
    "node": "ehnode",
    "name": "ehname",
    "version": "ehversion",
    "security_level": "ehsecuritylevel",
    "summary": "ehsummary",
    "bundle": "ehbundle",
    "merge_scheme": "ehmergescheme",
    "order": "ehorder",
    "mask": "ehmask",
    "expires_at": "expirytime",
}
_NUMBERS = {
    "priority": "ehpriority",
    "bundle_number": "ehbundlenumber",
    "time_constraint_ms": "ehtimeconstraintms",
}
_JSON = {  # lists and objects, as JSON
    "application": "ehapplication",
    "depends": "ehdepends",
    "destinations": "ehdestinations",
    "audience": "ehaudience",
    "environment": "ehenvironment",
    "attributes": "ehattributes",
}
_FLAGS = {"tombstone": "ehtombstone"}
_DELAYS = {"deliver_at": "ehdeliverat", "delay_ms": "ehdelayms"}  # of an emit, never stored
_NAMES = {**_TEXTS, **_NUMBERS, **_JSON, **_FLAGS, **_DELAYS, "channels": "ehchannels"}
_FIELDS = {extension: field for field, extension in _NAMES.items()}
CARRIES = (frozenset(_NAMES) | {"expires_at_us"}) - {"channels", "expires_at", *_DELAYS}
_USUAL = {"domain": DEFAULT_DOMAIN, "security_level": "med", "mask": DEFAULT_MASK}
_LATER = ("security_level", "mask", "expires_at")
_WRITTEN = tuple(
    _NAMES[field]
    for field in (
        *(field for field in _TEXTS if field not in (*_LATER, "node")),
        *_LATER,
        *_NUMBERS,
        *_FLAGS,
        *(field for field in _JSON if field != "attributes"),
    )
)  # the names of `to_extensions`, in its order, without those of attributes

_INT32_MAX = 2**31 - 1
_OWN_NAME = re.compile(r"[a-z0-9]{1,20}")
_TAKEN = {"id", "source", "type", "subject", "time", "data", "specversion", "datacontenttype"}


def name_of(field: str) -> str:
    """Return the extension of a field, or `field` if there is none."""
    return _NAMES.get(field, field)


def is_field(extension: str) -> bool:
    """Return whether an extension is a field of the event, not one of its attributes."""
    return extension in _FIELDS


def base64_text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def from_extensions(given: dict[str, Any]) -> dict[str, Any]:
    """Convert a CloudEvent's extensions to fields of an event; unknown extensions are attributes.
    Raises subclasses of BadRequest with the extension as `field`.
    """
    fields: dict[str, Any] = {"domain": DEFAULT_DOMAIN}
    attributes: dict[str, Any] = {}
    for extension, value in given.items():
        field = _FIELDS.get(extension)
        if field is None:
            attributes[extension] = value
        else:
            fields[field] = _value(field, extension, value)
    fields["attributes"] = {**attributes, **fields.get("attributes", {})}
    return fields


def _value(field: str, extension: str, value: Any) -> Any:
    if field in _NUMBERS or field == "delay_ms":
        return _number(extension, value)
    if field in _FLAGS:
        if value not in (True, False, "true", "false"):
            raise errors.InvalidField("Expected true or false.", field=extension)
        return value in (True, "true")
    if not isinstance(value, str):
        raise errors.InvalidField("Expected a text.", field=extension)
    if field == "channels":
        return [name.strip() for name in value.split(",")]
    if field not in _JSON:
        return value
    try:
        found = msgspec.json.decode(value)
    except (msgspec.MsgspecError, RecursionError):
        raise errors.InvalidField("Expected JSON.", field=extension) from None
    if field in ("attributes", "environment") and not isinstance(found, dict):
        raise errors.InvalidField("Expected a JSON object.", field=extension)
    return found


def _number(extension: str, value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,19}", value):
        return int(value)
    raise errors.InvalidField("Expected an integer.", field=extension)


def to_extensions(event: Event, *, typed: bool) -> dict[str, Any]:
    """Return the extensions of an event. `typed`: values keep their type. Headers do not: there a
    number or boolean is an extension and in the JSON object as well.
    """
    found = {name: value for name in _WRITTEN if (value := _field(event, _FIELDS[name]))}
    return {**found, **_attributes(event, typed=typed)}


def extension(event: Event, name: str) -> Any:
    """Return the extension of a name that is a field of the event (`is_field`), as `to_extensions`
    does with `typed`; None if there is none.
    """
    if name == "ehattributes":
        return _attributes(event, typed=True).get(name)
    return (_field(event, _FIELDS[name]) or None) if name in _WRITTEN else None


def _field(event: Event, field: str) -> Any:
    """Return the value of a field; a false one if it has no extension."""
    if field == "expires_at":
        return event.expires_at_us and time_text(event.expires_at_us)
    value = getattr(event, field)
    if value == _USUAL.get(field):
        return None
    if field in _JSON:
        return value and orjson.dumps(value).decode()
    is_text = field == "mask" or (field in _NUMBERS and value > _INT32_MAX)
    return str(value) if is_text else value


def _attributes(event: Event, *, typed: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    exact: dict[str, Any] = {}  # for the JSON object
    for name, value in event.attributes.items():
        fits = _fits(name, value)
        if fits:
            found[name] = value
        if not fits or not (typed or isinstance(value, str)):
            exact[name] = value
    if exact:
        found["ehattributes"] = orjson.dumps(exact).decode()
    return found


def _fits(name: str, value: Any) -> bool:
    if not _OWN_NAME.fullmatch(name) or name in _FIELDS or name in _TAKEN:
        return False
    if isinstance(value, bool):
        return True
    if isinstance(value, int):
        return -_INT32_MAX <= value <= _INT32_MAX
    return isinstance(value, str) and value != "" and value.isprintable()
