"""OAuth 2.0 with client credentials (RFC 6749, 4.4): requests for access tokens, and the responses
to them. Plain module.
"""

import base64
import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote_plus, urlencode

import orjson

from delivery.callbacks.client import CallbackResponse
from delivery.callbacks.post import target_of
from delivery.callbacks.token_request import TokenRequest
from eventhub.base import limits

_TOKEN = re.compile(r"[!-~]+")


class TokenUnavailable(Exception):
    """An access token cannot be had at present; the message says why and has no secret."""


class IssuedToken(NamedTuple):
    """An access token and how long it can be used."""

    text: str
    lifetime_s: float


def token_request(
    endpoint_id: int, secret_id: int, zone: str, value: Mapping[str, Any]
) -> TokenRequest:
    """Return the request for a token with the stored authentication of an endpoint. Raises
    ValueError.
    """
    target = target_of(value["token_url"], (), zone)
    if target.origin is None:
        raise ValueError("the token URL has no host")
    client_id, secret = value["client_id"], value["client_secret"]
    form = {"grant_type": "client_credentials"}
    if value.get("scopes"):
        form["scope"] = " ".join(value["scopes"])
    if value.get("audience"):
        form["audience"] = value["audience"]
    pair = base64.b64encode(f"{quote_plus(client_id)}:{quote_plus(secret)}".encode()).decode()
    authorization = f"authorization: Basic {pair}\r\n"
    if value["client_authentication"] == "body":
        form |= {"client_id": client_id, "client_secret": secret}
        authorization = ""
    body = urlencode(form).encode()
    head = (
        f"{target.head}{authorization}content-type: application/x-www-form-urlencoded\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    secrets = (secret, quote_plus(secret), pair)
    return TokenRequest(
        endpoint_id, secret_id, target.url, target.origin, head.encode() + body, secrets
    )


def read_issued_token(response: CallbackResponse) -> IssuedToken:
    """Return the token in a response. Raises TokenUnavailable."""
    if response.status != 200:
        start = response.body[: limits.OAUTH2_ERROR_BYTES_STORED_MAX].decode("utf-8", "replace")
        raise TokenUnavailable(f"{response.status} {response.reason} {start}".strip())
    try:
        found = orjson.loads(response.body)
        text, kind = found["access_token"], found["token_type"]
        lifetime_s = float(found.get("expires_in") or limits.OAUTH2_LIFETIME_S_DEFAULT)
        if not math.isfinite(lifetime_s):
            raise ValueError(lifetime_s)
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError):
        raise TokenUnavailable(
            "the response is no JSON object with access_token and token_type"
        ) from None
    if not isinstance(text, str) or not _TOKEN.fullmatch(text):
        raise TokenUnavailable("the access token is not printable ASCII without spaces")
    if not isinstance(kind, str) or kind.lower() != "bearer":
        raise TokenUnavailable("the token_type of the response is not Bearer")
    return IssuedToken(text, min(max(lifetime_s, 1.0), limits.OAUTH2_LIFETIME_S_MAX))
