"""GitHub: HMAC-SHA256 of the body in `X-Hub-Signature-256`, as in "Validating webhook deliveries".
A `ping`, which GitHub sends for a new webhook, is answered and not stored. Plain module.
"""

from registrations.sources.providers.provider import NoOptions, Provider, SourceReply, usual_map
from registrations.sources.received import ReceivedRequest
from registrations.sources.verification import hex_hmac, require_equal, required_header

_PREFIX = "sha256="


def verify(request: ReceivedRequest, secret: str, options: NoOptions, now_s: int) -> None:
    """Raise Unverified unless the signature is of the secret and the body; it has no time stamp."""
    given = required_header(request.headers, "X-Hub-Signature-256")
    require_equal(_PREFIX + hex_hmac(secret.encode(), request.body), given)


def challenge(request: ReceivedRequest) -> SourceReply | None:
    """Return the answer to a ping."""
    if request.headers.get("x-github-event") != "ping":
        return None
    return SourceReply(b'{"answered":"ping"}')


PROVIDER = Provider(
    "github",
    "GitHub: the webhook's secret",
    verify,
    usual_map(
        domain={"value": "GitHub"},
        type={"join": [{"header": "X-GitHub-Event"}, {"body": "/action"}]},
        id={"header": "X-GitHub-Delivery"},
        attributes={
            "repository": {"body": "/repository/full_name"},
            "organization": {"body": "/organization/login"},
            "sender": {"body": "/sender/login"},
            "ref": {"body": "/ref"},
        },
    ),
    challenge=challenge,
)
