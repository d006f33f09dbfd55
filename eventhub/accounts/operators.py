"""Changes of operators: create, change, delete, and their passwords; each is announced to operators
only. Django module.

A role is what `role_in` (eventhub/access/credential_queries.py) makes of Django's flags and group.
A password is hashed before the transaction, without a database connection. An operator without a
password sets it with a set-up token: Django's token for resetting passwords, which is derived from
the stored password and the last login, so that it can be used once, and not after either changed.
"""

from datetime import timedelta
from typing import Any

from django.contrib.auth import login, password_validation, update_session_auth_hash
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import Group, User
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Q
from django.http import HttpRequest
from django.utils import timezone

from eventhub.access import roles
from eventhub.access.credential_queries import VIEWERS
from eventhub.access.operators import operators
from eventhub.access.principal import OPERATORS_ONLY
from eventhub.accounts.login import BACKEND, check_password, count_user, hashed
from eventhub.api.announcements import announce_all
from eventhub.api.if_match import require_unchanged
from eventhub.base import caller, limits
from eventhub.base.errors import (
    Conflict,
    InvalidField,
    InvalidSetupToken,
    LastAdmin,
    LimitReached,
    NotFound,
)
from eventhub.eventlog.resource_changes import Resource
from eventhub.eventlog.system import Announcement

NO_OPERATOR = "There is no operator of this name."
HUB = 0  # operators belong to the hub: the zone of their resources in `resource_changes`
_ADMIN = Q(is_staff=True, is_superuser=True)


class _SetupTokens(PasswordResetTokenGenerator):  # type: ignore[misc]
    """Valid for PASSWORD_RESET_TIMEOUT."""

    key_salt = "eventhub.accounts.operators.setup"


_tokens = _SetupTokens()


def resource_of(name: str) -> Resource:
    return Resource("operator", HUB, name)


def create_operator(*, name: str, role: str, password: str | None = None) -> Any:
    """Create an operator and return it, with a `setup_token` unless a password is given. Raises
    Conflict if the name is taken, LimitReached, InvalidField for a password that is easily guessed.
    """
    user = User(username=name)
    user.password = make_password(None) if password is None else _new_password(user, password)
    with transaction.atomic():
        _lock(name)
        if User.objects.filter(username=name).exists():
            raise Conflict("An operator with this name exists; choose another.", field="name")
        if operators().count() >= limits.OPERATORS_MAX:
            raise LimitReached(limit=limits.OPERATORS_MAX)
        _set_role(user, role)
        user.save()
        _set_group(user, role)
        announce_all(zone=None, announcements=[_change("operator.created", name, role=role)])
    return _with_token(user, issued=password is None)


def change_operator(*, name: str, if_match: int | None = None, **changes: Any) -> Any:
    """Change the `role`, whether the operator is `active`, and the `password`, those that are
    given. Sessions and connection tokens lose the right at once; a new password ends them. Raises
    NotFound, LastAdmin, InvalidField for a password that is easily guessed.
    """
    password = changes.get("password")
    new = None if password is None else _new_password(User(username=name), password)
    with transaction.atomic():
        user = _lock_operator(name, if_match)
        role, active = changes.get("role", user.role), changes.get("active", user.is_active)
        if not (role == roles.ADMIN and active):
            _require_other_admin(user)
        announcements = []
        if (role, active) != (user.role, user.is_active):
            _set_role(user, role)
            _set_group(user, role)
            user.is_active = active
            announcements.append(_change("operator.changed", name, role=role, active=active))
        if new is not None:
            user.password = new
            announcements.append(_change("operator.password_reset", name, by_token=False))
        if announcements:
            user.save(update_fields=["is_staff", "is_superuser", "is_active", "password"])
            announce_all(zone=None, announcements=announcements)
    return _found(name)


def issue_setup_token(*, name: str) -> Any:
    """Remove the operator's password, and with it its sessions and earlier tokens, and return the
    operator with a `setup_token`, which sets a new one. Raises NotFound, LastAdmin.
    """
    with transaction.atomic():
        user = _lock_operator(name, None)
        _require_other_admin(user)
        user.set_unusable_password()
        user.save(update_fields=["password"])
        announce_all(
            zone=None, announcements=[_change("operator.password_reset", name, by_token=True)]
        )
    return _with_token(user)


def _with_token(user: User, *, issued: bool = True) -> Any:
    """Return the operator with a new `setup_token` and its end; None: it has a password."""
    found = _found(user.username)
    end = timezone.now() + timedelta(seconds=limits.OPERATOR_SETUP_S_MAX)
    found.setup_token = _tokens.make_token(found) if issued else None
    found.setup_expires_at = end if issued else None
    return found


def delete_operator(*, name: str, if_match: int | None = None) -> None:
    """Delete an operator. Its sessions and connection tokens end at once. Raises NotFound,
    LastAdmin.
    """
    with transaction.atomic():
        user = _lock_operator(name, if_match)
        _require_other_admin(user)
        User.objects.filter(pk=user.pk).delete()
        announce_all(zone=None, announcements=[_change("operator.deleted", name)])


def set_up(*, request: HttpRequest, username: str, setup_token: str, password: str) -> Any:
    """Set the password of an operator with its set-up token, and log it in. Raises
    InvalidSetupToken; InvalidField, which leaves the token valid, for a password that is easily
    guessed; TooManyRequests.
    """
    count_user(request, username)
    user = operators().filter(username=username, is_active=True).first()
    if user is None or not _tokens.check_token(user, setup_token):
        raise InvalidSetupToken
    stored = _new_password(user, password)
    with transaction.atomic():
        user = _lock_operator(username, None)
        if not (user.is_active and _tokens.check_token(user, setup_token)):
            raise InvalidSetupToken
        caller.identify("operator", operator=username)
        _store_own(user, stored)
    login(request, user, BACKEND)
    return user


def change_own_password(*, request: HttpRequest, password: str, new_password: str) -> Any:
    """Change the password of the operator who is logged in. All its other sessions end. Raises
    InvalidField for a wrong present password, or a new one that is easily guessed; TooManyRequests.
    """
    name = request.user.get_username()
    count_user(request, name)
    if not check_password(request.user, password):
        raise InvalidField("This is not your present password.", field="password")
    stored = _new_password(User(username=name), new_password, field="new_password")
    with transaction.atomic():
        user = _lock_operator(name, None)
        if user.password != request.user.password:
            raise InvalidField("The password has changed meanwhile; log in.", field="password")
        _store_own(user, stored)
    update_session_auth_hash(request, user)
    return user


def _store_own(user: Any, stored: str) -> None:
    user.password = stored
    user.save(update_fields=["password"])
    announce_all(zone=None, announcements=[_change("operator.password_changed", user.username)])


def _new_password(user: User, password: str, *, field: str = "password") -> str:
    """Return the stored form of a new password. Raises InvalidField if it is easily guessed."""
    try:
        password_validation.validate_password(password, user)
    except ValidationError as error:
        raise InvalidField(" ".join(error.messages), field=field) from error
    return hashed(password)


def _lock(name: str) -> list[User]:
    """Lock the admins and the operator, if there is one, until the end of the transaction: so
    changes of operators follow each other, and the last admin is known.
    """
    users = User.objects.filter(_ADMIN | Q(username=name)).order_by("pk")
    return [*users.select_for_update(no_key=True)]


def _lock_operator(name: str, if_match: int | None) -> Any:
    _lock(name)
    user = _found(name)
    require_unchanged(resource_of(name), if_match)
    return user


def _found(name: str) -> Any:
    user = operators().filter(username=name).first()
    if user is None:
        raise NotFound(NO_OPERATOR, field="operator")
    return user


def _require_other_admin(user: Any) -> None:
    """Raise LastAdmin if no admin but this one could log in; without any, nothing is lost."""
    if user.role != roles.ADMIN or not (user.is_active and user.has_usable_password()):
        return
    others = User.objects.filter(_ADMIN, is_active=True).exclude(pk=user.pk)
    if not any(other.has_usable_password() for other in others):
        raise LastAdmin(operator=user.username)


def _set_role(user: Any, role: str) -> None:
    user.is_staff = role != roles.VIEWER
    user.is_superuser = role == roles.ADMIN


def _set_group(user: Any, role: str) -> None:
    if role == roles.VIEWER:
        user.groups.add(Group.objects.get_or_create(name=VIEWERS)[0])
    else:
        user.groups.remove(*user.groups.filter(name=VIEWERS))


def _change(type: str, name: str, **attributes: Any) -> Announcement:
    """Return the announcement of a change, for operators only: their names concern no tenant, and
    help to guess logins.
    """
    what = {"operator": name, **attributes}
    return Announcement(type, what, resource_of(name), OPERATORS_ONLY)
