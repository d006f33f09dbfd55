"""Connection tokens: signed, short-lived substitutes for an API key or an operator's login where no
header can be sent (EventSource, a browser's websocket). Plain module.

A token names its key or login and may narrow its grants. It can be used until it expires, and ends
with its key or login: after `read_token`, find the live key by `public_id`, or the live login. It
is a JWT (HS256); its secret is derived from that of the hub.
"""

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import jwt
from jwt.types import Options

from eventhub.access.grants import Grant, parse_grants
from eventhub.access.keys import is_public_id
from eventhub.base import limits
from eventhub.base.clock import Clock
from eventhub.base.errors import EventHubError, InvalidCredentials, TokenExpired

_AUDIENCE = "eventhub-connection"
_DECODE: Options = {"verify_exp": False, "verify_iat": False, "verify_nbf": False}  # by our clock


class TokenClaims(NamedTuple):
    """The claims of a key's token. `grants`: None for those of the key.

    `mint_token` sets `expires_at_us`.
    """

    public_id: str
    grants: tuple[Grant, ...] | None = None
    expires_at_us: int = 0


class LoginClaims(NamedTuple):
    """The claims of an operator's token: the user, the zone and the login.

    `login` has the SHA-256 of the session's cookie and of the stored password. So the token ends
    when the operator logs out or gets a new password, and contains nothing that helps to log in.
    """

    user_id: int
    zone_id: int
    login: str
    grants: tuple[Grant, ...] | None = None
    expires_at_us: int = 0


Claims = TokenClaims | LoginClaims


def mint_token(secret: str, claims: Claims, lifetime_s: int, clock: Clock) -> str:
    """Return a token that is valid for `lifetime_s` seconds from now, rounded down to a second."""
    payload: dict[str, Any] = {
        "aud": _AUDIENCE,
        "exp": clock.now_us() // 1_000_000 + lifetime_s,
    }
    if isinstance(claims, TokenClaims):
        payload["key"] = claims.public_id
    else:
        payload |= {"operator": claims.user_id, "zone": claims.zone_id, "login": claims.login}
    if claims.grants is not None:
        payload["grants"] = [grant.json() for grant in claims.grants]
    return jwt.encode(payload, _signing_key(secret), algorithm="HS256")


def read_token(secret: str, text: str, clock: Clock, *former_secrets: str) -> Claims:
    """Return the claims of a token, signed with the hub's secret or a former one. Raises
    InvalidCredentials if it is forged or malformed, TokenExpired if it has expired.
    """
    if len(text) > limits.TOKEN_BYTES_MAX:
        raise InvalidCredentials
    try:
        claims = _claims(_payload((secret, *former_secrets), text))
    except (jwt.PyJWTError, EventHubError, ValueError, KeyError, TypeError) as error:
        raise InvalidCredentials from error
    if claims.expires_at_us <= clock.now_us():
        raise TokenExpired
    return claims


def _payload(secrets: Sequence[str], text: str) -> dict[str, Any]:
    """Return the payload of a token that one of the secrets signed. Raises jwt.PyJWTError."""
    *others, last = map(_signing_key, secrets)
    for key in others:
        with suppress(jwt.InvalidSignatureError):
            return jwt.decode(text, key, algorithms=["HS256"], audience=_AUDIENCE, options=_DECODE)
    return jwt.decode(text, last, algorithms=["HS256"], audience=_AUDIENCE, options=_DECODE)


def _claims(payload: dict[str, Any]) -> Claims:
    expires_at_us = _whole(payload, "exp") * 1_000_000
    grants = parse_grants(payload["grants"]) if "grants" in payload else None
    if "operator" in payload:
        user_id, zone_id = _whole(payload, "operator"), _whole(payload, "zone")
        return LoginClaims(user_id, zone_id, _text(payload, "login"), grants, expires_at_us)
    public_id = _text(payload, "key")
    if not is_public_id(public_id):
        raise ValueError("key")
    return TokenClaims(public_id, grants, expires_at_us)


def _whole(payload: dict[str, Any], name: str) -> int:
    found = payload[name]
    if not isinstance(found, int):
        raise TypeError(name)
    return found


def _text(payload: dict[str, Any], name: str) -> str:
    found = payload[name]
    if not isinstance(found, str):
        raise TypeError(name)
    return found


def _signing_key(secret: str) -> bytes:
    if not secret:
        raise EventHubError("The hub has no EVENTHUB_SECRET_KEY; set one, see docs/settings.md.")
    return hashlib.sha256(b"eventhub connection token\0" + secret.encode()).digest()
