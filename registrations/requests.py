"""Reads the bodies of registrations: what a new one asks for, and what a change leaves or replaces
(SUN-02, SUN-18). Plain.

Errors name the field, and in a list the index. Whether streams and endpoints exist is not known
here.
"""

from typing import Any, NamedTuple

from eventhub import limits
from eventhub.access.names import valid_name
from eventhub.errors import (
    BodyNotFilterable,
    EventHubError,
    FieldTooLong,
    InvalidField,
    MissingField,
    UnknownField,
)
from registrations.endpoints.addresses import CallbackAddresses
from registrations.endpoints.callback_url import valid_url
from registrations.errors import TooManyRegistrations
from registrations.filters import (
    FILTER_FIELDS,
    Filter,
    FilterChange,
    parse_filter,
    parse_filter_change,
)

_CHANGE = frozenset(("streams", *FILTER_FIELDS, "endpoint"))
_NEW = _CHANGE | {"callback", "client"}
_ID_MAX = (1 << 63) - 1


class NewRegistration(NamedTuple):
    """What one registration asks for. At most one of `endpoint` and `callback` is given."""

    streams: tuple[str, ...]
    filter: Filter
    endpoint: int | None
    callback: str | None  # a URL
    client: str | None

    @property
    def calls_back(self) -> bool:
        return self.endpoint is not None or self.callback is not None


class RegistrationChange(NamedTuple):
    """What a change replaces; the rest stays."""

    streams: tuple[str, ...] | None  # None: they stay
    filter: FilterChange
    endpoint: int | None
    changes_endpoint: bool


def parse_new(body: Any, addresses: CallbackAddresses) -> tuple[list[NewRegistration], bool]:
    """The registrations of a body, and whether it is a list."""
    if not isinstance(body, list):
        return [_parse_one(body, addresses)], False
    if not body:
        raise InvalidField("The list is empty; send at least one registration.")
    if len(body) > limits.REGISTRATIONS_PER_REQUEST_MAX:
        raise TooManyRegistrations(items_max=limits.REGISTRATIONS_PER_REQUEST_MAX)
    found: list[NewRegistration] = []
    for index, item in enumerate(body):
        try:
            found.append(_parse_one(item, addresses))
            if found[0].client != found[-1].client:
                message = "The registrations of one request are of one client."
                raise InvalidField(message, field="client")
        except EventHubError as error:
            error.index = index
            raise
    return found, True


def parse_change(body: Any) -> RegistrationChange:
    """What the body of a PATCH changes; nothing if it is empty."""
    fields = _object(body, _CHANGE)
    return RegistrationChange(
        _streams(fields["streams"]) if "streams" in fields else None,
        parse_filter_change(fields),
        _endpoint(fields),
        "endpoint" in fields,
    )


def _parse_one(item: Any, addresses: CallbackAddresses) -> NewRegistration:
    fields = _object(item, _NEW)
    if "streams" not in fields:
        raise MissingField(field="streams")
    client, callback = fields.get("client"), fields.get("callback")
    if client is not None:
        if not isinstance(client, str):
            raise InvalidField("A client is named by a text.", field="client")
        valid_name(client, field="client")
    if callback is not None:
        if fields.get("endpoint") is not None:
            message = "Give either an `endpoint` or a `callback`."
            raise InvalidField(message, field="callback")
        callback = valid_url(callback, addresses, field="callback")
    filter = parse_filter(fields)
    return NewRegistration(_streams(fields["streams"]), filter, _endpoint(fields), callback, client)


def _object(item: Any, known: frozenset[str]) -> dict[str, Any]:
    if not isinstance(item, dict):
        raise InvalidField("A registration is an object.")
    for name in item:
        if name in ("body", "body_base64"):
            raise BodyNotFilterable(field=name)
        if name not in known:
            raise UnknownField(field=_shown(name))
    return item


def _streams(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise InvalidField("`streams` is a list of names, at least one.", field="streams")
    if len(value) > limits.STREAMS_PER_REGISTRATION_MAX:
        raise FieldTooLong(field="streams", streams_max=limits.STREAMS_PER_REGISTRATION_MAX)
    for index, name in enumerate(value):
        if not isinstance(name, str):
            raise InvalidField("A stream is named by a text.", field=f"streams.{index}")
        valid_name(name, field=f"streams.{index}")
    return tuple(dict.fromkeys(value))


def _endpoint(fields: dict[str, Any]) -> int | None:
    value = fields.get("endpoint")
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= _ID_MAX:
        raise InvalidField("`endpoint` is an endpoint's number.", field="endpoint")
    return value


def _shown(name: str) -> str:
    return name[:100]
