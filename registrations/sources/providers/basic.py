"""HTTP Basic authentication (RFC 7617): the secret is user and password with a colon between.
Plain module.
"""

from registrations.sources.providers.provider import (
    NoOptions,
    Provider,
    random_secret,
    usual_map,
)
from registrations.sources.received import ReceivedRequest
from registrations.sources.verification import (
    Unverified,
    decode_base64,
    require_same_secret,
    required_header,
)


def verify(request: ReceivedRequest, secret: str, options: NoOptions, now_s: int) -> None:
    """Raise Unverified unless the request has the user and the password."""
    scheme, _, encoded = required_header(request.headers, "Authorization").partition(" ")
    try:
        given = decode_base64(encoded.strip()).decode() if scheme.lower() == "basic" else ""
    except ValueError:
        raise Unverified("malformed_signature", "Authorization is not Basic.") from None
    require_same_secret(secret, given)


def check_secret(text: str) -> None:
    """Raise ValueError unless the text has a user and a password."""
    user, colon, password = text.partition(":")
    if not (user and colon and password):
        raise ValueError("A secret of `basic` is a user, a colon and a password.")


PROVIDER = Provider(
    "basic",
    "HTTP Basic authentication: `user:password`",
    verify,
    usual_map(
        domain={"value": "Webhook"},
        type={"body": "/type", "default": "received"},
    ),
    new_secret=lambda: f"webhook:{random_secret()}",
    check_secret=check_secret,
    hidden=lambda options: ("authorization",),
)
