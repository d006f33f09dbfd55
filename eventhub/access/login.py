"""Operators' logins: checks the password, counts attempts in the database, so that guessing is slow
without Redis.
"""

from django.contrib.auth import authenticate, login
from django.contrib.auth.models import AbstractBaseUser
from django.db import connection
from django.http import HttpRequest

from eventhub import limits
from eventhub.access.grants import Grant
from eventhub.access.operators_sql import login_digest
from eventhub.access.tokens import LoginClaims
from eventhub.errors import InvalidLogin, TooManyRequests

# One more attempt of the subject in the running window, or the first of a new one.
_COUNT = """
    INSERT INTO login_attempts AS a (subject, started_at, attempts) VALUES (%s, now(), 1)
    ON CONFLICT (subject) DO UPDATE SET
        attempts = CASE WHEN a.started_at < now() - make_interval(secs => %s) THEN 1
                        ELSE a.attempts + 1 END,
        started_at = CASE WHEN a.started_at < now() - make_interval(secs => %s) THEN now()
                          ELSE a.started_at END
    RETURNING attempts
"""
_FORGET = "DELETE FROM login_attempts WHERE started_at < now() - make_interval(secs => %s)"


def log_in(*, request: HttpRequest, username: str, password: str) -> AbstractBaseUser:
    """Start a session for a staff user; InvalidLogin, or TooManyRequests after too many attempts,
    also right ones.
    """
    address = request.META.get("REMOTE_ADDR", "")
    _count_attempt(f"address:{address}", limits.LOGIN_ATTEMPTS_PER_ADDRESS_MAX)
    # not for the username alone: anybody could then lock the operator out
    _count_attempt(f"user:{username}@{address}", limits.LOGIN_ATTEMPTS_PER_USER_MAX)
    user = authenticate(request, username=username, password=password)
    if user is None or not getattr(user, "is_staff", False):
        raise InvalidLogin
    login(request, user)
    return user


def claims_of(
    *, request: HttpRequest, zone_id: int, grants: tuple[Grant, ...] | None
) -> LoginClaims:
    """What a connection token says of the operator who asks for it."""
    user = request.user
    digest = login_digest(session_key=request.session.session_key, password=user.password)
    return LoginClaims(user.pk, zone_id, digest, grants)


def _count_attempt(subject: str, most: int) -> None:
    window_s = limits.LOGIN_WINDOW_S
    with connection.cursor() as cursor:
        cursor.execute(_FORGET, [window_s])
        cursor.execute(_COUNT, [subject, window_s, window_s])
        [attempts] = cursor.fetchone()
    if attempts > most:
        raise TooManyRequests("Too many logins; wait a minute.", retry_after_s=window_s)
