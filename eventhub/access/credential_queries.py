"""The queries of live keys and logins, and the principals of their rows. Plain module."""

import hashlib
from typing import Any, LiteralString

import orjson

from eventhub.access.addresses import known_networks
from eventhub.access.grants import Grant
from eventhub.access.principal import OPERATOR_PREFIX, Principal
from eventhub.access.quotas import EmitRates
from eventhub.access.roles import ADMIN, OPERATOR, VIEWER
from eventhub.base import limits
from eventhub.base.clock import Clock

# The columns in the order of `principal_of`. Grants and groups are selected as text and times as
# microseconds, because the two connections load jsonb and timestamptz differently. A live key is
# neither revoked nor expired.
_LIVE_KEY: LiteralString = """
    SELECT k.id, k.public_id, c.id, c.name, z.id, z.name, k.grants::text,
           (extract(epoch FROM k.expires_at) * 1000000)::bigint, c.groups::text,
           (SELECT value FROM quotas
             WHERE zone_id = z.id AND client_id = c.id AND kind = 'events_per_s'),
           (SELECT value FROM quotas
             WHERE zone_id = z.id AND client_id IS NULL AND kind = 'events_per_s'),
           (SELECT value FROM quotas
             WHERE zone_id = z.id AND client_id IS NULL AND kind = 'stored_bytes'
               AND reached_at IS NOT NULL),
           EXISTS (SELECT FROM quotas
                    WHERE zone_id = z.id AND (client_id = c.id OR client_id IS NULL)
                      AND kind = 'sockets'),
           k.allowed_addresses::text
    FROM api_keys k
    JOIN clients c ON c.id = k.client_id
    JOIN zones z ON z.id = c.zone_id
    WHERE k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now())
"""
# by API key; parameter: sha256 of the key's text
FIND_BY_DIGEST: LiteralString = _LIVE_KEY + " AND k.digest = %s"
# by connection token; parameter: the token's `public_id`
FIND_BY_PUBLIC_ID: LiteralString = _LIVE_KEY + " AND k.public_id = %s"


def principal_of(row: tuple[Any, ...]) -> Principal:
    """Return the principal of a row of either query."""
    key_id, public_id, client_id, client, zone_id, zone, grants, expires_at_us, *more = row
    groups, client_rate, zone_rate, storage_quota, sockets, addresses = more
    # grants were validated when written; validating them again would cost more than the tuple
    found = tuple(Grant(item["action"], item["streams"]) for item in orjson.loads(grants))
    owner = (key_id, public_id, client_id, client, zone_id, zone)
    rates = EmitRates(client_rate, zone_rate)
    return Principal(
        *owner,
        found,
        expires_at_us,
        groups=frozenset(orjson.loads(groups)),
        rates=None if rates == (None, None) else rates,
        storage_quota=storage_quota,
        sockets_bounded=sockets,
        networks=None if addresses is None else known_networks(orjson.loads(addresses)),
    )


# The grants of an operator's token: listen to every stream of its zone and to `system`, and
# download sealed segments.
OPERATOR_GRANTS = (Grant("listen", "*"), Grant("manage", "*"))

VIEWERS = "viewers"  # the name of the group of viewers


def role_in(users: LiteralString) -> LiteralString:
    """Return the expression of the role of a row of Django's users under this name; NULL for none.

    Admins and operators have Django's own flags, which a hub of the release before reads too. That
    one must not admit viewers, so these have no flag: they are members of a group.
    """
    return f"""CASE
        WHEN {users}.is_staff AND {users}.is_superuser THEN '{ADMIN}'
        WHEN {users}.is_staff THEN '{OPERATOR}'
        WHEN EXISTS (SELECT FROM auth_user_groups m JOIN auth_group g ON g.id = m.group_id
                      WHERE m.user_id = {users}.id AND g.name = '{VIEWERS}') THEN '{VIEWER}'
    END"""


# Parameters: zone, user, login, login. Sessions are found through the index `operator_sessions`;
# an operator has a few. The digest of the password must match as well.
FIND_LOGIN: LiteralString = f"""
    SELECT u.id, u.username, z.id, z.name, r.role
    FROM auth_user u
    CROSS JOIN LATERAL (SELECT {role_in("u")} AS role) r
    JOIN zones z ON z.id = %s AND z.deleted_at IS NULL
    WHERE u.id = %s AND u.is_active AND r.role IS NOT NULL
      AND EXISTS (
        SELECT FROM django_session s
        WHERE sha256(s.session_key::bytea) = decode(left(%s, 64), 'hex')
          AND s.expire_date > now()
      )
      AND encode(sha256(convert_to(u.password, 'UTF8')), 'hex') = substr(%s, 65)
"""  # noqa: S608 - of constants


def login_digest(*, session_key: str, password: str) -> str:
    """Return the login as a token names it: digests of the session key and the password's hash."""
    parts = (session_key, password)
    return "".join(hashlib.sha256(part.encode()).hexdigest() for part in parts)


def operator_of(row: tuple[Any, ...], clock: Clock) -> Principal:
    """Return the principal of a row, which expires soon: `system` announces no end of a login. Its
    `client_id` is negative: sockets and fair shares are counted per operator, apart from clients.
    """
    user_id, username, zone_id, zone, role = row
    until_us = clock.now_us() + limits.LOGIN_CONFIRMED_MS_MAX * 1000
    name = OPERATOR_PREFIX + username
    owner = (0, name, -user_id, name, zone_id, zone)
    return Principal(*owner, OPERATOR_GRANTS, until_us, role=role)
