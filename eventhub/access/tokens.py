"""Connection tokens: signed, short-lived stand-ins for an API key or an operator's login where no
header can be sent (EventSource, a browser's websocket). Plain module.

A token names its key, or its login, and may narrow its grants. It is reusable until it expires, and
dies with what it stands for: whoever reads one must then find the live key by `public_id`, or the
live login. It is a JWT (HS256) under a secret derived from the hub's own.
"""

import hashlib
from typing import Any, NamedTuple

import jwt
from jwt.types import Options

from eventhub.access.grants import Grant, parse_grants
from eventhub.access.keys import is_public_id
from eventhub.base import limits
from eventhub.base.clock import Clock
from eventhub.base.errors import EventHubError, InvalidCredentials, TokenExpired

_AUDIENCE = "eventhub-connection"
_DECODE: Options = {"verify_exp": False, "verify_iat": False, "verify_nbf": False}  # our clock


class TokenClaims(NamedTuple):
    """What a token says. `grants` None: those of the key.

    `expires_at_us` is set by `mint_token`.
    """

    public_id: str
    grants: tuple[Grant, ...] | None = None
    expires_at_us: int = 0


class LoginClaims(NamedTuple):
    """What a token of an operator says: who, in which zone, by which login.

    `login` is the sha256 of the login's cookie and of the stored password, so that neither logging
    out nor a new password leaves the token alive, and nothing in it helps to log in.
    """

    user_id: int
    zone_id: int
    login: str
    grants: tuple[Grant, ...] | None = None
    expires_at_us: int = 0


Claims = TokenClaims | LoginClaims


def mint_token(secret: str, claims: Claims, lifetime_s: int, clock: Clock) -> str:
    """A token that is valid for `lifetime_s` whole seconds from now, rounded down to a second."""
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


def read_token(secret: str, text: str, clock: Clock) -> Claims:
    """The claims of a token; InvalidCredentials for a forged or broken one, TokenExpired for an old
    one.
    """
    if len(text) > limits.TOKEN_BYTES_MAX:
        raise InvalidCredentials
    try:
        payload = jwt.decode(
            text, _signing_key(secret), algorithms=["HS256"], audience=_AUDIENCE, options=_DECODE
        )
        claims = _claims(payload)
    except (jwt.PyJWTError, EventHubError, ValueError, KeyError, TypeError) as error:
        raise InvalidCredentials from error
    if claims.expires_at_us <= clock.now_us():
        raise TokenExpired
    return claims


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
