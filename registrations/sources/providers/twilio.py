"""Twilio: HMAC of the URL and the sorted fields of the form in `X-Twilio-Signature`, as in "Secure
webhooks"; the URL of a JSON body has its digest. SHA-1 by default, SHA-256 by a webhooks rule.
Plain module.

The URL is the one that Twilio was given: behind a proxy, the hub has to know the scheme and the
host (`EVENTHUB_TRUSTED_PROXIES`). A port is compared as sent and without it.
"""

import hashlib
from urllib.parse import parse_qsl, urlsplit

from eventhub.base import limits
from registrations.sources.providers.provider import NoOptions, Provider, SourceReply, usual_map
from registrations.sources.received import FORM, ReceivedRequest
from registrations.sources.verification import (
    Unverified,
    base64_hmac,
    require_equal,
    required_header,
)

_BODY_DIGEST = "bodySHA256"
_DEFAULT_PORTS = {"http": 80, "https": 443}


def verify(request: ReceivedRequest, secret: str, options: NoOptions, now_s: int) -> None:
    """Raise Unverified unless the signature is of the token, the URL and the body."""
    given = required_header(request.headers, "X-Twilio-Signature")
    settings = request.headers.get("x-twilio-webhooks-signature-settings", "")
    algorithm = "sha256" if "HMAC_SHA256" in settings else "sha1"
    fields = _signed_fields(request)
    expected = [
        base64_hmac(secret.encode(), (target + fields).encode(), algorithm)
        for target in _targets(request.target)
    ]
    require_equal(given, *expected)


def _signed_fields(request: ReceivedRequest) -> str:
    """Return the sorted fields of a form; of another body nothing, after its digest was checked.
    Raises Unverified.
    """
    if request.media_type == FORM or not request.body:
        try:
            return "".join(name + value for name, value in sorted(set(request.form())))
        except ValueError:
            raise Unverified("malformed_signature", "The form cannot be read.") from None
    digests = [value for name, value in _query(request) if name == _BODY_DIGEST]
    if len(digests) != 1:
        message = f"The URL of a body that is no form has no {_BODY_DIGEST}."
        raise Unverified("missing_signature", message)
    require_equal(hashlib.sha256(request.body).hexdigest(), digests[0].lower())
    return ""


def _query(request: ReceivedRequest) -> list[tuple[str, str]]:
    query = urlsplit(request.target).query
    try:
        return parse_qsl(query, max_num_fields=limits.SOURCE_FORM_FIELDS_MAX)
    except ValueError:
        raise Unverified("malformed_signature", "The query cannot be read.") from None


def _targets(target: str) -> list[str]:
    """Return the URL as sent, and with the port of its scheme added or left out."""
    parts = urlsplit(target)
    default = _DEFAULT_PORTS.get(parts.scheme)
    host = parts.netloc.removesuffix(f":{default}")
    if host == parts.netloc and parts.port is not None:
        return [target]
    forms = (parts._replace(netloc=host), parts._replace(netloc=f"{host}:{default}"))
    return list(dict.fromkeys([target, *(form.geturl() for form in forms)]))


PROVIDER = Provider(
    "twilio",
    "Twilio: the account's auth token",
    verify,
    usual_map(
        domain={"value": "Twilio"},
        type={
            "join": [
                {"value": "webhook"},
                {"body": "/CallStatus"},
                {"body": "/MessageStatus"},
                {"body": "/SmsStatus"},
            ]
        },
        id={"header": "I-Twilio-Idempotency-Token"},
        attributes={
            "account": {"body": "/AccountSid"},
            "message": {"body": "/MessageSid"},
            "call": {"body": "/CallSid"},
            "from": {"body": "/From"},
            "to": {"body": "/To"},
        },
    ),
    success=SourceReply(b"<Response></Response>", b"text/xml"),  # TwiML: nothing more to do
)
