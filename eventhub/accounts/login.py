"""Operators' logins: password check and rate limit. Attempts are counted in the database, so that
guessing is slow also without Redis. No database connection is held while a password is hashed.
Django module.
"""

from django.contrib.auth import login
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.db import connection
from django.http import HttpRequest

from eventhub.access.credential_queries import login_digest
from eventhub.access.grants import Grant
from eventhub.access.tokens import LoginClaims
from eventhub.accounts.password_hashing import HashingSlots
from eventhub.base import limits
from eventhub.base.errors import InvalidLogin, TooManyRequests

# Counts an attempt of the subject in the current window, or starts a new one.
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


_hashing = HashingSlots()


def count_attempt(*, request: HttpRequest) -> None:
    """Count a login request of its address; call it before the body is read. Raises
    TooManyRequests above the limit.
    """
    _count(f"address:{_address(request)}", limits.LOGIN_ATTEMPTS_PER_ADDRESS_MAX)


def log_in(*, request: HttpRequest, username: str, password: str) -> User:
    """Start a session of a staff user. Raises InvalidLogin; TooManyRequests after too many
    attempts, successful ones included, and when too many logins wait.
    """
    address = _address(request)
    # not by username alone: anyone could then lock the operator out
    _count(f"user:{username}@{address}", limits.LOGIN_ATTEMPTS_PER_USER_MAX)
    user = User.objects.filter(username=username).first()
    if not connection.in_atomic_block:
        connection.close()  # returns to the pool, because hashing takes long
    with _hashing.slot(address):
        matches = _matches(user, password)
    if user is None or not (matches and user.is_active and user.is_staff):
        raise InvalidLogin
    login(request, user, f"{ModelBackend.__module__}.{ModelBackend.__qualname__}")
    return user


def _matches(user: User | None, password: str) -> bool:
    """Return True if the password is the user's; takes as long if there is no such user."""
    if user is None:
        make_password(password)
        return False
    return bool(user.check_password(password))


def _address(request: HttpRequest) -> str:
    return str(request.META.get("REMOTE_ADDR", ""))


def claims_of(request: HttpRequest, zone_id: int, grants: tuple[Grant, ...] | None) -> LoginClaims:
    """Return the claims of a connection token for the operator of the request."""
    user = request.user
    digest = login_digest(session_key=request.session.session_key, password=user.password)
    return LoginClaims(user.pk, zone_id, digest, grants)


def _count(subject: str, most: int) -> None:
    window_s = limits.LOGIN_WINDOW_S
    with connection.cursor() as cursor:
        cursor.execute(_FORGET, [window_s])
        cursor.execute(_COUNT, [subject, window_s, window_s])
        [attempts] = cursor.fetchone()
    if attempts > most:
        raise TooManyRequests("Too many logins; wait a minute.", retry_after_s=window_s)
