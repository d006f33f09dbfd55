"""Finds the live login that an operator's connection token stands for. Plain module.

Nothing in `system` tells of a user who was dismissed or has logged out, so a login counts only for
`LOGIN_CONFIRMED_S_MAX` and is then looked up again.
"""

import hashlib
from typing import Any, LiteralString

from eventhub.access.grants import Grant
from eventhub.access.principal import Principal
from eventhub.base import limits
from eventhub.base.clock import Clock

# What a token of an operator may: listen everywhere in its zone, also to `system`, and take a
# sealed segment as it is stored.
OPERATOR_GRANTS = (Grant("listen", "*"), Grant("manage", "*"))

# Parameters: user, zone, login. Sessions are found through the index `operator_sessions`
# (migration 0002), of which there are a few per operator; then the password has its say.
FIND_LOGIN: LiteralString = """
    SELECT u.id, u.username, z.id, z.name
    FROM auth_user u
    JOIN zones z ON z.id = %s
    WHERE u.id = %s AND u.is_active AND u.is_staff
      AND EXISTS (
        SELECT FROM django_session s
        WHERE sha256(s.session_key::bytea) = decode(left(%s, 64), 'hex')
          AND s.expire_date > now()
      )
      AND encode(sha256(convert_to(u.password, 'UTF8')), 'hex') = substr(%s, 65)
"""


def login_digest(*, session_key: str, password: str) -> str:
    """What a token holds of a login: digests of the cookie's session and of the password's hash."""
    parts = (session_key, password)
    return "".join(hashlib.sha256(part.encode()).hexdigest() for part in parts)


def operator_of(row: tuple[Any, ...], clock: Clock) -> Principal:
    """The principal of a row of the query, until it must be looked up again.

    `client_id` is negative: a place of its own among those who count sockets, and no client's.
    """
    user_id, username, zone_id, zone = row
    until_us = clock.now_us() + limits.LOGIN_CONFIRMED_MS_MAX * 1000
    name = f"operator:{username}"
    return Principal(0, name, -user_id, name, zone_id, zone, OPERATOR_GRANTS, until_us)
