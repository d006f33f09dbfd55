"""Slack: HMAC-SHA256 of version, time stamp and body in `X-Slack-Signature`, as in "Verifying
requests from Slack". A `url_verification` is answered with its challenge. Plain module.
"""

import orjson

from registrations.sources.providers.provider import NoOptions, Provider, SourceReply, usual_map
from registrations.sources.received import ReceivedRequest
from registrations.sources.verification import (
    hex_hmac,
    require_equal,
    require_recent,
    required_header,
)

_VERSION = "v0"


def verify(request: ReceivedRequest, secret: str, options: NoOptions, now_s: int) -> None:
    """Raise Unverified unless the signature is of the secret, the time stamp and the body."""
    time_stamp = required_header(request.headers, "X-Slack-Request-Timestamp")
    given = required_header(request.headers, "X-Slack-Signature")
    require_recent(time_stamp, now_s, "X-Slack-Request-Timestamp")
    content = f"{_VERSION}:{time_stamp}:".encode() + request.body
    require_equal(f"{_VERSION}={hex_hmac(secret.encode(), content)}", given)


def challenge(request: ReceivedRequest) -> SourceReply | None:
    """Return the answer to the verification of the URL."""
    document = request.document()
    if not isinstance(document, dict) or document.get("type") != "url_verification":
        return None
    return SourceReply(orjson.dumps({"challenge": document.get("challenge")}))


PROVIDER = Provider(
    "slack",
    "Slack: the application's signing secret",
    verify,
    usual_map(
        domain={"value": "Slack"},
        type={
            "join": [{"body": "/type"}, {"body": "/event/type"}, {"body": "/command"}],
            "default": "received",
        },
        id={"body": "/event_id"},
        time={"header": "X-Slack-Request-Timestamp"},
        attributes={
            "team": {"body": "/team_id"},
            "channel": {"body": "/event/channel"},
            "user": {"body": "/event/user"},
        },
    ),
    challenge=challenge,
    success=SourceReply(b"", b"text/plain"),  # Slack would show a text to the user of a command
)
