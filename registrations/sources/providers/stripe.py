"""Stripe: HMAC-SHA256 of time stamp and body in `Stripe-Signature`, as in "Verify webhook
signatures manually". While Stripe rolls a secret, the header has a signature of each. Plain module.
"""

from registrations.sources.providers.provider import NoOptions, Provider, usual_map
from registrations.sources.received import ReceivedRequest
from registrations.sources.verification import (
    Unverified,
    hex_hmac,
    require_equal,
    require_recent,
    required_header,
)

_HEADER = "Stripe-Signature"


def verify(request: ReceivedRequest, secret: str, options: NoOptions, now_s: int) -> None:
    """Raise Unverified unless a signature `v1` is of the secret, the time stamp and the body."""
    parts = [part.strip().partition("=") for part in _header(request).split(",")]
    times = [value for name, _, value in parts if name == "t"]
    signatures = [value for name, _, value in parts if name == "v1"]
    if len(times) != 1 or not signatures:
        raise Unverified("malformed_signature", f"{_HEADER} is not of the form t=…,v1=….")
    require_recent(times[0], now_s, _HEADER)
    content = times[0].encode() + b"." + request.body
    require_equal(hex_hmac(secret.encode(), content), *signatures)


def _header(request: ReceivedRequest) -> str:
    return required_header(request.headers, _HEADER)


PROVIDER = Provider(
    "stripe",
    "Stripe: the endpoint's signing secret, `whsec_…`",
    verify,
    usual_map(
        domain={"value": "Stripe"},
        type={"body": "/type"},
        id={"body": "/id"},
        time={"body": "/created"},
        attributes={
            "account": {"body": "/account"},
            "livemode": {"body": "/livemode"},
            "api_version": {"body": "/api_version"},
            "object": {"body": "/data/object/object"},
            "object_id": {"body": "/data/object/id"},
        },
    ),
)
