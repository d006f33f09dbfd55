"""Parses the bodies of requests that create and change registrations (SUN-02, SUN-18). Plain
module.

Errors name the field and, in a list, the index. This module does not know which streams and
endpoints exist.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from eventhub.access.names import valid_name
from eventhub.base import limits
from eventhub.base.errors import (
    BodyNotFilterable,
    EventHubError,
    FieldTooLong,
    InvalidField,
    MissingField,
    UnknownField,
)
from eventhub.base.strict_json import NOT_NULL
from registrations.endpoints.addresses import CallbackAddresses
from registrations.endpoints.callback_url import valid_url
from registrations.errors import TooManyRegistrations
from registrations.filter_source import (
    FILTER_FIELDS,
    Fields,
    FilterChange,
    FilterSource,
    parse_filter,
    parse_filter_change,
)
from registrations.filters.report import parse_report

_CHANGE = frozenset(
    ("streams", *FILTER_FIELDS, "endpoint", "suspended", "group", "report", "signature")
)
_NEW = _CHANGE | {"callback", "client", "key", "session", "session_group"}
_ID_MAX = (1 << 63) - 1


class NewRegistration(NamedTuple):
    """A registration to be created. At most one of `endpoint` and `callback` is given."""

    streams: tuple[str, ...]
    filter: FilterSource
    endpoint: int | None = None
    callback: str | None = None  # a URL
    client: str | None = None
    suspended: bool = False
    group: str | None = None  # of the same client, by name
    report: Any = None  # JSON (registrations.filters.report); None: the whole event
    key: str | None = None  # the client's own name for it
    signature: frozenset[str] | None = None  # the properties that the filter demands (OIF-04)
    # the consumer session, or the session group, of the client that it belongs to; not both
    session: str | None = None
    session_group: str | None = None


class RegistrationChange(NamedTuple):
    """The fields that a change replaces; the others stay."""

    filter: FilterChange
    given: frozenset[str]  # names of the given fields: None removes an endpoint, group or report
    streams: tuple[str, ...] | None = None  # None: they stay
    endpoint: int | None = None
    suspended: bool | None = None  # None: it stays
    group: str | None = None
    report: Any = None
    signature: frozenset[str] | None = None  # checked, not stored


def parse_new(body: Any, addresses: CallbackAddresses) -> tuple[list[NewRegistration], bool]:
    """Return the registrations of a body, and whether the body is a list."""
    if not isinstance(body, list):
        return [parse_one(body, addresses)], False
    if not body:
        raise InvalidField("The list is empty; send at least one registration.")
    if len(body) > limits.REGISTRATIONS_PER_REQUEST_MAX:
        raise TooManyRegistrations(items_max=limits.REGISTRATIONS_PER_REQUEST_MAX)
    found: list[NewRegistration] = []
    for index, item in enumerate(body):
        try:
            found.append(parse_one(item, addresses))
            if found[0].client != found[-1].client:
                message = "The registrations of one request belong to one client."
                raise InvalidField(message, field="client")
        except EventHubError as error:
            error.index = index
            raise
    return found, True


def parse_change(body: Any) -> RegistrationChange:
    """Parse the body of a PATCH; an empty one changes nothing."""
    fields = object_of(body, _CHANGE)
    streams = _read(fields, ("streams",))
    change = parse_filter_change(fields)
    return RegistrationChange(change, frozenset(fields), **streams, **_read(fields, _OTHERS))


def parse_one(item: Any, addresses: CallbackAddresses) -> NewRegistration:
    """Parse one new registration. Raises subclasses of BadRequest with the field."""
    fields = object_of(item, _NEW)
    if "streams" not in fields:
        raise MissingField(field="streams")
    callback = fields.get("callback")
    if callback is not None:
        if fields.get("endpoint") is not None:
            message = "Give either an `endpoint` or a `callback`."
            raise InvalidField(message, field="callback")
        callback = valid_url(callback, addresses, field="callback")
    if fields.get("session") is not None and fields.get("session_group") is not None:
        message = "A registration belongs to a `session` or to a `session_group`, not to both."
        raise InvalidField(message, field="session_group")
    streams = streams_of(fields["streams"])
    filter = parse_filter(fields).prepared()
    return NewRegistration(streams, filter, callback=callback, **_read(fields, _OTHERS))


def object_of(item: Any, known: frozenset[str]) -> Fields:
    """Return the fields of an object. Raises UnknownField for a field that is not in `known`."""
    if not isinstance(item, dict):
        raise InvalidField("A registration is an object.")
    for name in item:
        if name in ("body", "body_base64"):
            raise BodyNotFilterable(field=name)
        if name not in known:
            raise UnknownField(field=name[:100])
    return item


def streams_of(value: Any, field: str = "streams") -> tuple[str, ...]:
    """Return the names of streams in the order of the request, each once."""
    if value is None:
        raise InvalidField(NOT_NULL, field=field)
    if not isinstance(value, list) or not value:
        raise InvalidField("`streams` is a list of at least one name.", field=field)
    if len(value) > limits.STREAMS_PER_REGISTRATION_MAX:
        most = limits.STREAMS_PER_REGISTRATION_MAX
        message = f"A registration names at most {most} streams; create several registrations."
        raise FieldTooLong(message, field=field, streams_max=most)
    for index, name in enumerate(value):
        if not isinstance(name, str):
            raise InvalidField("The name of a stream is a string.", field=f"{field}.{index}")
        valid_name(name, field=f"{field}.{index}")
    return tuple(dict.fromkeys(value))


def name_of(value: Any, field: str) -> str | None:
    """Return the name of a client, group or session; None if it is absent."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise InvalidField(f"The name of a {field.replace('_', ' ')} is a string.", field=field)
    return valid_name(value, field=field)


def number_of(value: Any, field: str, what: str = "") -> int | None:
    """Return a number from 1 on; None if it is absent. `what` describes it in an error."""
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= _ID_MAX:
        raise InvalidField(f"{what or f'`{field}`'} is a number from 1 on.", field=field)
    return value


def key_of(value: Any, field: str = "key") -> str | None:
    """Return the client's own name for a registration, any string; None if it is absent."""
    if value is None:
        return None
    if not isinstance(value, str) or not value or "\0" in value:
        raise InvalidField("A key is a string of at least one character, without NUL.", field=field)
    if len(value) > limits.REGISTRATION_KEY_CHARS_MAX:
        raise FieldTooLong(field=field, chars_max=limits.REGISTRATION_KEY_CHARS_MAX)
    return value


def _flag(value: Any, field: str) -> bool:
    if not isinstance(value, bool):
        message = NOT_NULL if value is None else "The value is true or false."
        raise InvalidField(message, field=field)
    return value


def _report(value: Any, field: str) -> Any:
    """Check a report and return it as it is written; None: the whole event."""
    if value is not None:
        parse_report(value)
    return value


def _signature(value: Any, field: str) -> frozenset[str] | None:
    """Return the names of properties, each once; None if they are absent."""
    if value is None:
        return None
    if not isinstance(value, list):
        message = 'A signature is a list of property names, as in ["type", "user"].'
        raise InvalidField(message, field=field)
    if len(value) > limits.SIGNATURE_NAMES_MAX:
        raise FieldTooLong(
            f"A signature has at most {limits.SIGNATURE_NAMES_MAX:,} names.",
            field=field,
            count_max=limits.SIGNATURE_NAMES_MAX,
        )
    found: set[str] = set()
    for at, name in enumerate(value):
        if not isinstance(name, str):
            raise InvalidField("The name of a property is a string.", field=f"{field}.{at}")
        if len(name) > limits.PATH_CHARS_MAX:
            raise FieldTooLong(field=f"{field}.{at}", chars_max=limits.PATH_CHARS_MAX)
        if name in found:
            raise InvalidField("The property is listed twice.", field=f"{field}.{at}")
        found.add(name)
    return frozenset(found)


_READERS: dict[str, Callable[[Any, str], Any]] = {
    "streams": streams_of,
    "endpoint": number_of,
    "client": name_of,
    "suspended": _flag,
    "group": name_of,
    "report": _report,
    "signature": _signature,
    "key": key_of,
    "session": name_of,
    "session_group": name_of,
}
_OTHERS = tuple(name for name in _READERS if name != "streams")


def _read(fields: Fields, names: Iterable[str]) -> dict[str, Any]:
    """Read the given ones of the fields; `names` is the order in which errors are reported."""
    return {name: _READERS[name](fields[name], name) for name in names if name in fields}
