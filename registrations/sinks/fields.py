"""Which fields an endpoint has by its kind, and their defaults. SQL module."""

from collections.abc import Collection, Mapping
from typing import Any, get_args

import msgspec

from eventhub.base.errors import InvalidField, MissingField
from registrations.endpoints.addresses import CallbackAddresses
from registrations.endpoints.callback_url import valid_url
from registrations.endpoints.statements import Handshake
from registrations.sinks.kind import SinkKind
from registrations.sinks.registry import HTTPS, SINKS, parse_settings

CHECK = "check"  # the handshake of sinks: a worker looks whether everything is there
_POSTED = ("basic", "bearer", "oauth2_client_credentials")  # authentication of requests
_OF_REQUESTS = ("signature", "secret", "headers", "tls")  # fields that only posting needs
_DEFAULTED = {"signature", "handshake", "ordered"}  # of other kinds the defaults differ
_HANDSHAKES = tuple(each for each in get_args(Handshake) if each != CHECK)


def new_fields(
    given: Mapping[str, Any], named: Collection[str], addresses: CallbackAddresses
) -> dict[str, Any]:
    """Return the fields of a new endpoint, with the defaults of its kind; `named`: those that the
    request names. Raises subclasses of BadRequest.
    """
    kind = given.get("kind", HTTPS)
    sink = SINKS.get(kind)
    if sink is not None:
        unset = _DEFAULTED.difference(named)
        given = {name: value for name, value in given.items() if name not in unset}
    checked_fields(kind, given, addresses)
    if sink is None:
        return dict(given)
    for name in ("settings", "authentication") if sink.needs_authentication else ("settings",):
        if given.get(name) is None:
            raise MissingField(field=name)
    return {
        **{name: values[0] for name, values in sink.fixed.items()},
        **sink.defaults,
        **given,
        "settings": stored(sink, given["settings"]),
        "handshake": CHECK,
    }


def checked_fields(
    kind: str, given: Mapping[str, Any], addresses: CallbackAddresses
) -> dict[str, Any]:
    """Return the given fields of an endpoint, in the form in which they are stored. Raises
    subclasses of BadRequest for those that its kind does not have.
    """
    sink = SINKS.get(kind)
    if sink is None:
        _check_posted(given, addresses)
        return dict(given)
    _check_fixed(sink, given)
    if sink.is_batched and given.get("batch_events_max", 1) is None:
        raise InvalidField(f"An endpoint of the kind {kind} needs a batch.", field="batch")
    if "url" in given:
        sink.check_url(given["url"], addresses)
    if "authentication" in given:
        _check_authentication(kind, given["authentication"], sink.authentication)
        if given["authentication"] is None and sink.needs_authentication:
            message = f"An endpoint of the kind {kind} needs it; give another one."
            raise InvalidField(message, field="authentication")
    if "settings" not in given:
        return dict(given)
    return {**given, "settings": stored(sink, given["settings"])}


def _check_fixed(sink: SinkKind, given: Mapping[str, Any]) -> None:
    """Check the fields that its kind does not have, or of which it has certain values."""
    for name in _OF_REQUESTS:
        if name in given and name not in sink.credentials:
            _refuse(sink.name, name)
    for name, values in {**sink.fixed, "handshake": (CHECK,)}.items():
        if given.get(name, values[0]) not in values:
            _one_of(sink.name, name, values)


def stored(sink: SinkKind, settings: Any) -> Any:
    """Return the settings with their defaults. Raises subclasses of BadRequest."""
    return msgspec.to_builtins(parse_settings(sink, settings))


def _check_posted(given: Mapping[str, Any], addresses: CallbackAddresses) -> None:
    """Check the fields of an endpoint to which events are posted."""
    if "settings" in given:
        _refuse(HTTPS, "settings")
    if given.get("handshake", "none") == CHECK:
        _one_of(HTTPS, "handshake", _HANDSHAKES)
    if "url" in given:
        valid_url(given["url"], addresses, field="url")
    _check_authentication(HTTPS, given.get("authentication"), _POSTED)


def _check_authentication(kind: str, given: Any, types: tuple[str, ...]) -> None:
    if given is not None and given["type"] not in types:
        _one_of(kind, "authentication.type", types)


def _one_of(kind: str, name: str, values: tuple[Any, ...]) -> None:
    allowed = " or ".join(f"`{str(each).lower() if each in (True, False) else each}`"
                          for each in values)  # fmt: skip
    raise InvalidField(f"Of an endpoint of the kind {kind}, this is {allowed}.", field=name)


def _refuse(kind: str, name: str) -> None:
    raise InvalidField(f"An endpoint of the kind {kind} has no `{name}`.", field=name)
