"""Operators' logins: password check and rate limit. Attempts are counted in the database, so that
guessing is slow also without Redis. No database connection is held while a password is hashed.
Django module.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib.auth import login
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.db import connection
from django.http import HttpRequest

from eventhub.access.credential_queries import login_digest
from eventhub.access.grants import Grant
from eventhub.access.operators import role_of
from eventhub.access.tokens import LoginClaims
from eventhub.accounts.password_hashing import HashingSlots
from eventhub.base import caller, limits
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


BACKEND = f"{ModelBackend.__module__}.{ModelBackend.__qualname__}"
_hashing = HashingSlots()


def count_attempt(*, request: HttpRequest) -> None:
    """Count a login request of its address; call it before the body is read. Raises
    TooManyRequests above the limit.
    """
    _count(f"address:{_address(request)}", limits.LOGIN_ATTEMPTS_PER_ADDRESS_MAX)


def log_in(*, request: HttpRequest, username: str, password: str) -> User:
    """Start a session of an operator. Raises InvalidLogin; TooManyRequests after too many attempts,
    successful ones included, and when too many logins wait.
    """
    count_user(request, username)
    user = User.objects.filter(username=username).first()
    matches = check_password(user, password)
    if user is None or not (matches and role_of(user)):
        raise InvalidLogin
    login(request, user, BACKEND)
    return user


def count_user(request: HttpRequest, username: str) -> None:
    """Count an attempt to log in as this user from its address. Raises TooManyRequests."""
    # not by username alone: anyone could then lock the operator out
    subject = f"user:{username}@{_address(request)}"
    _count(subject, limits.LOGIN_ATTEMPTS_PER_USER_MAX)


def check_password(user: Any, password: str) -> bool:
    """Return True if the password is the user's; takes as long if there is none. Raises
    TooManyRequests.
    """
    with _hashing_slot():
        return _matches(user, password)


def hashed(password: str) -> str:
    """Return the stored form of a password. Raises TooManyRequests."""
    with _hashing_slot():
        return str(make_password(password))


@contextmanager
def _hashing_slot() -> Iterator[None]:
    """Hold a slot of the caller's address; the database connection returns to the pool, because
    hashing takes long.
    """
    if not connection.in_atomic_block:
        connection.close()
    with _hashing.slot(caller.current().address):
        yield


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
