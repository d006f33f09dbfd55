"""The query that finds the live login behind an operator's connection token. Plain module.

`system` does not announce that a user was deactivated or logged out, so a login counts only for
`LOGIN_CONFIRMED_MS_MAX` and is then looked up again.
"""

import hashlib
from typing import Any, LiteralString

from eventhub.access.grants import Grant
from eventhub.access.principal import Principal
from eventhub.base import limits
from eventhub.base.clock import Clock

# The grants of an operator's token: listen to every stream of its zone and to `system`, and
# download sealed segments.
OPERATOR_GRANTS = (Grant("listen", "*"), Grant("manage", "*"))

# Parameters: zone, user, login, login. Sessions are found through the index `operator_sessions`;
# an operator has a few. The digest of the password must match as well.
FIND_LOGIN: LiteralString = """
    SELECT u.id, u.username, z.id, z.name
    FROM auth_user u
    JOIN zones z ON z.id = %s AND z.deleted_at IS NULL
    WHERE u.id = %s AND u.is_active AND u.is_staff
      AND EXISTS (
        SELECT FROM django_session s
        WHERE sha256(s.session_key::bytea) = decode(left(%s, 64), 'hex')
          AND s.expire_date > now()
      )
      AND encode(sha256(convert_to(u.password, 'UTF8')), 'hex') = substr(%s, 65)
"""


def login_digest(*, session_key: str, password: str) -> str:
    """Return the login as a token names it: digests of the session key and the password's hash."""
    parts = (session_key, password)
    return "".join(hashlib.sha256(part.encode()).hexdigest() for part in parts)


def operator_of(row: tuple[Any, ...], clock: Clock) -> Principal:
    """Return the principal of a row of the query; it expires when the login is to be looked up
    again.

    Its `client_id` is negative: sockets and fair shares are counted per operator, apart from
    clients.
    """
    user_id, username, zone_id, zone = row
    until_us = clock.now_us() + limits.LOGIN_CONFIRMED_MS_MAX * 1000
    name = f"operator:{username}"
    return Principal(0, name, -user_id, name, zone_id, zone, OPERATOR_GRANTS, until_us)
