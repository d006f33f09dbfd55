"""A key in a header or query parameter, which is the secret itself. Plain module."""

from typing import Literal

from msgspec import Struct

from registrations.sources.providers.hmac_header import HeaderName
from registrations.sources.providers.provider import Provider, usual_map
from registrations.sources.received import ReceivedRequest
from registrations.sources.verification import Unverified, require_same_secret


class ApiKeyOptions(Struct, forbid_unknown_fields=True):
    """Where the key is: in a header, or in a query parameter, which proxies may log."""

    name: HeaderName
    location: Literal["header", "query"] = "header"


def verify(request: ReceivedRequest, secret: str, options: ApiKeyOptions, now_s: int) -> None:
    """Raise Unverified unless the request has the key once."""
    require_same_secret(secret, _key(request, options))


def _key(request: ReceivedRequest, options: ApiKeyOptions) -> str:
    if options.location == "header":
        given = [request.headers.get(options.name.lower(), "")]
    else:
        try:
            given = [value for name, value in request.parameters() if name == options.name]
        except ValueError:
            raise Unverified("malformed_signature", "The query cannot be read.") from None
    if len(given) != 1 or not given[0]:
        message = f"The request has not exactly one {options.location} {options.name}."
        raise Unverified("missing_signature", message)
    return given[0]


PROVIDER = Provider(
    "api-key",
    "A key in a header or query parameter",
    verify,
    usual_map(
        domain={"value": "Webhook"},
        type={"body": "/type", "default": "received"},
    ),
    options=ApiKeyOptions,
    hidden=lambda options: (options.name.lower(),),
)
