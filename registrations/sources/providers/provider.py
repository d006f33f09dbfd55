"""The form of a provider: how its requests are verified, mapped and answered. Plain module."""

import secrets
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from registrations.sources.mapping import SourceMap
from registrations.sources.received import ReceivedRequest

_SECRET_BYTES = 32


class NoOptions(Struct, forbid_unknown_fields=True):
    """A provider whose verification has no options."""


class SourceReply(NamedTuple):
    """The answer to a request that is not an event: a challenge, or a trial of the URL."""

    body: bytes
    content_type: bytes = b"application/json"


Verify = Callable[[ReceivedRequest, str, Any, int], None]
"""Raises Unverified unless the request proves a secret. Arguments: the request, the text of the
secret, the options, and the time in seconds since 1970.
"""


def _no_challenge(request: ReceivedRequest) -> SourceReply | None:
    return None


def _any_secret(text: str) -> None:
    """Accept any text as a secret."""


def random_secret() -> str:
    """Return a secret of 256 random bits, as text."""
    return secrets.token_urlsafe(_SECRET_BYTES)


class Provider(NamedTuple):
    """A provider. `usual`: its map, for the fields that a source does not map; `challenge`: called
    with a verified request, returns the answer to one that is no event; `success`: the answer to an
    event that was stored, None for the hub's own; `check_secret` raises ValueError with a message;
    `hidden`: the headers and query parameters, by the options, whose values are secret.
    """

    name: str
    summary: str
    verify: Verify
    usual: SourceMap
    challenge: Callable[[ReceivedRequest], SourceReply | None] = _no_challenge
    success: SourceReply | None = None
    options: type[Struct] = NoOptions
    new_secret: Callable[[], str] = random_secret
    check_secret: Callable[[str], None] = _any_secret
    hidden: Callable[[Any], tuple[str, ...]] = lambda options: ()


def usual_map(**fields: Any) -> SourceMap:
    """Return a provider's map from its JSON form."""
    return msgspec.convert(fields, SourceMap)
