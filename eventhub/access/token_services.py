"""Mints connection tokens, for a key or for an operator's login.

Nobody gives more than they have.
"""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from django.conf import settings

from eventhub import limits
from eventhub.access.grants import Grant, covers
from eventhub.access.operators_sql import OPERATOR_GRANTS
from eventhub.access.principal import Principal
from eventhub.access.tokens import Claims, LoginClaims, TokenClaims, mint_token
from eventhub.clock import Clock, SystemClock
from eventhub.errors import InvalidField, WiderGrant

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class MintedToken(NamedTuple):
    token: str
    expires_at: datetime


def mint(
    *,
    principal: Principal,
    grants: tuple[Grant, ...] | None,
    lifetime_s: int,
    clock: Clock | None = None,
) -> MintedToken:
    """A connection token for the key, with all its grants or fewer."""
    _require_few_within(principal.grants, grants)
    return _minted(TokenClaims(principal.public_id, grants), lifetime_s, clock)


def mint_for_login(
    *, login: LoginClaims, lifetime_s: int, clock: Clock | None = None
) -> MintedToken:
    """A connection token for an operator's login: to listen in one zone."""
    _require_few_within(OPERATOR_GRANTS, login.grants)
    return _minted(login, lifetime_s, clock)


def require_covered(own: tuple[Grant, ...], wanted: tuple[Grant, ...]) -> None:
    """WiderGrant, with its place, unless each lies within one of the own."""
    for index, grant in enumerate(wanted):
        if not covers(own, grant):
            raise WiderGrant(field=f"grants.{index}", grant=grant.json())


def _require_few_within(own: tuple[Grant, ...], wanted: tuple[Grant, ...] | None) -> None:
    if wanted is None:
        return
    if len(wanted) > limits.CONNECTION_TOKEN_GRANTS_MAX:
        message = f"A token narrows to at most {limits.CONNECTION_TOKEN_GRANTS_MAX} grants."
        raise InvalidField(message, field="grants")
    require_covered(own, wanted)


def _minted(claims: Claims, lifetime_s: int, clock: Clock | None) -> MintedToken:
    clock = clock or SystemClock()
    token = mint_token(settings.ENV.secret_key, claims, lifetime_s, clock)
    now_s = clock.now_us() // 1_000_000
    return MintedToken(token, _EPOCH + timedelta(seconds=now_s + lifetime_s))
