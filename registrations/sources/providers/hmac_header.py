"""Any HMAC of the body in a header: its name, algorithm, encoding and prefix are options.
Plain module.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from eventhub.base import limits
from registrations.sources.providers.provider import Provider, usual_map
from registrations.sources.received import ReceivedRequest
from registrations.sources.verification import (
    base64_hmac,
    hex_hmac,
    require_equal,
    required_header,
)

HeaderName = Annotated[
    str,
    Meta(min_length=1, max_length=limits.NAME_CHARS_MAX, pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$"),
]


class HmacOptions(Struct, forbid_unknown_fields=True):
    """Where the signature is, and how it is computed."""

    header: HeaderName
    algorithm: Literal["sha1", "sha256", "sha384", "sha512"] = "sha256"
    encoding: Literal["hex", "base64"] = "hex"
    prefix: Annotated[str, Meta(max_length=32)] = ""


def verify(request: ReceivedRequest, secret: str, options: HmacOptions, now_s: int) -> None:
    """Raise Unverified unless the header has the prefix and the HMAC of the body; hexadecimal
    digits may be upper case.
    """
    given = required_header(request.headers, options.header)
    encode = hex_hmac if options.encoding == "hex" else base64_hmac
    expected = encode(secret.encode(), request.body, options.algorithm)
    signature = given[len(options.prefix) :] if given.startswith(options.prefix) else ""
    require_equal(expected, signature.lower() if options.encoding == "hex" else signature)


PROVIDER = Provider(
    "hmac",
    "Any HMAC of the body in a header",
    verify,
    usual_map(
        domain={"value": "Webhook"},
        type={"body": "/type", "default": "received"},
    ),
    options=HmacOptions,
)
