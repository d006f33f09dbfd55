"""Shopify: HMAC-SHA256 of the body in base64 in `X-Shopify-Hmac-SHA256`, as in "Verify webhook
deliveries". Plain module.
"""

from registrations.sources.providers.provider import NoOptions, Provider, usual_map
from registrations.sources.received import ReceivedRequest
from registrations.sources.verification import base64_hmac, require_equal, required_header


def verify(request: ReceivedRequest, secret: str, options: NoOptions, now_s: int) -> None:
    """Raise Unverified unless the signature is of the secret and the body; it has no time stamp."""
    given = required_header(request.headers, "X-Shopify-Hmac-SHA256")
    require_equal(base64_hmac(secret.encode(), request.body), given)


PROVIDER = Provider(
    "shopify",
    "Shopify: the application's client secret",
    verify,
    usual_map(
        domain={"value": "Shopify"},
        type={"header": "X-Shopify-Topic"},
        id={"header": "X-Shopify-Webhook-Id"},
        time={"header": "X-Shopify-Triggered-At"},
        attributes={
            "shop": {"header": "X-Shopify-Shop-Domain"},
            "api_version": {"header": "X-Shopify-API-Version"},
            "object_id": {"body": "/id"},
        },
    ),
)
